SELECT
  "__tulle_12"."__tulle_8" AS "__tulle_owner_0",
  "__tulle_12"."__tulle_9" AS "__tulle_owner_1",
  "__tulle_12"."__tulle_10" AS "__tulle_owner_2",
  CAST(SUM(
    ROUND(
      CAST(CASE
        WHEN "__tulle_12"."__tulle_weight" > CAST(CAST(0 AS DECIMAL) AS DOUBLE PRECISION)
        AND "__tulle_12"."__tulle_weight" <= CAST(1E240 AS DOUBLE PRECISION)
        THEN "__tulle_12"."__tulle_weight"
        ELSE CAST(CAST(0 AS DECIMAL) AS DOUBLE PRECISION)
      END AS DECIMAL),
      300
    )
  ) AS DOUBLE PRECISION) AS "__tulle_above",
  CAST(SUM(
    ROUND(
      CAST(CASE
        WHEN "__tulle_12"."__tulle_weight" < CAST(CAST(0 AS DECIMAL) AS DOUBLE PRECISION)
        AND "__tulle_12"."__tulle_weight" >= (
          -CAST(1E+240 AS DOUBLE PRECISION)
        )
        THEN "__tulle_12"."__tulle_weight"
        ELSE CAST(CAST(0 AS DECIMAL) AS DOUBLE PRECISION)
      END AS DECIMAL),
      300
    )
  ) AS DOUBLE PRECISION) AS "__tulle_below"
FROM (
  SELECT
    "__tulle_7"."__tulle_weight",
    LEAST("__tulle_7"."__tulle_4", "__tulle_7"."__tulle_5") AS "__tulle_8",
    GREATEST("__tulle_7"."__tulle_4", "__tulle_7"."__tulle_5") AS "__tulle_9",
    "__tulle_7"."__tulle_6" AS "__tulle_10"
  FROM (
    SELECT
      (
        (
          (
            NULLIF(
              NULLIF(
                LEAST(
                  GREATEST(CAST("_1"."l_price" AS DOUBLE PRECISION), CAST('-1e154' AS DOUBLE PRECISION)),
                  CAST('1e154' AS DOUBLE PRECISION)
                ),
                CAST('-1e154' AS DOUBLE PRECISION)
              ),
              CAST('1e154' AS DOUBLE PRECISION)
            ) + CAST('1e-130' AS DOUBLE PRECISION)
          ) - CAST('1e-130' AS DOUBLE PRECISION)
        ) / NULLIF(
          (
            (
              NULLIF(
                NULLIF(
                  LEAST(
                    GREATEST(CAST("_1"."l_tax" AS DOUBLE PRECISION), CAST('-1e154' AS DOUBLE PRECISION)),
                    CAST('1e154' AS DOUBLE PRECISION)
                  ),
                  CAST('-1e154' AS DOUBLE PRECISION)
                ),
                CAST('1e154' AS DOUBLE PRECISION)
              ) + CAST('1e-130' AS DOUBLE PRECISION)
            ) - CAST('1e-130' AS DOUBLE PRECISION)
          ),
          0
        )
      ) AS "__tulle_weight",
      "_0"."__tulle_1" AS "__tulle_4",
      "_1"."__tulle_2" AS "__tulle_5",
      "_1"."__tulle_3" AS "__tulle_6"
    FROM (
      SELECT
        "t"."o_orderkey" AS "o_orderkey",
        CAST("t"."o_custkey" AS BIGINT) AS "__tulle_1"
      FROM "orders" AS "t"
      WHERE
        NOT "t"."o_custkey" IS NULL
    ) AS "_0"
    JOIN (
      SELECT
        "t"."l_orderkey" AS "l_orderkey",
        "t"."l_price" AS "l_price",
        "t"."l_tax" AS "l_tax",
        CAST("t1"."o_custkey" AS BIGINT) AS "__tulle_2",
        CAST("t"."l_suppkey" AS BIGINT) AS "__tulle_3"
      FROM "lineitem" AS "t"
      JOIN "orders" AS "t1"
        ON "t"."l_orderkey" = "t1"."o_orderkey"
      WHERE
        NOT "t1"."o_custkey" IS NULL AND NOT "t"."l_suppkey" IS NULL
    ) AS "_1"
      ON "_1"."l_orderkey" = "_0"."o_orderkey"
    WHERE
      NOT (
        (
          (
            (
              NULLIF(
                NULLIF(
                  LEAST(
                    GREATEST(CAST("_1"."l_price" AS DOUBLE PRECISION), CAST('-1e154' AS DOUBLE PRECISION)),
                    CAST('1e154' AS DOUBLE PRECISION)
                  ),
                  CAST('-1e154' AS DOUBLE PRECISION)
                ),
                CAST('1e154' AS DOUBLE PRECISION)
              ) + CAST('1e-130' AS DOUBLE PRECISION)
            ) - CAST('1e-130' AS DOUBLE PRECISION)
          ) / NULLIF(
            (
              (
                NULLIF(
                  NULLIF(
                    LEAST(
                      GREATEST(CAST("_1"."l_tax" AS DOUBLE PRECISION), CAST('-1e154' AS DOUBLE PRECISION)),
                      CAST('1e154' AS DOUBLE PRECISION)
                    ),
                    CAST('-1e154' AS DOUBLE PRECISION)
                  ),
                  CAST('1e154' AS DOUBLE PRECISION)
                ) + CAST('1e-130' AS DOUBLE PRECISION)
              ) - CAST('1e-130' AS DOUBLE PRECISION)
            ),
            0
          )
        )
      ) IS NULL
  ) AS "__tulle_7"
) AS "__tulle_12"
GROUP BY
  "__tulle_12"."__tulle_8",
  "__tulle_12"."__tulle_9",
  "__tulle_12"."__tulle_10"
