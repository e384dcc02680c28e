SELECT DISTINCT
  DENSE_RANK() OVER (ORDER BY "__tulle_19"."__tulle_18") AS "__tulle_tuple",
  "__tulle_19"."__tulle_16" AS "__tulle_owner_0",
  "__tulle_19"."__tulle_17" AS "__tulle_owner_1"
FROM (
  SELECT
    "_2"."__tulle_11" AS "__tulle_16",
    "_2"."__tulle_12" AS "__tulle_17",
    "_2"."a" AS "__tulle_18"
  FROM (
    SELECT
      "__tulle_15"."a" AS "a",
      "__tulle_15"."__tulle_11",
      "__tulle_15"."__tulle_12"
    FROM (
      SELECT
        "__tulle_13"."a" AS "a",
        "__tulle_13"."__tulle_3" AS "__tulle_11",
        "__tulle_13"."__tulle_4" AS "__tulle_12"
      FROM (
        SELECT
          "__tulle_9"."a" AS "a",
          "__tulle_9"."__tulle_3",
          "__tulle_9"."__tulle_4"
        FROM (
          SELECT
            "_0"."a" AS "a",
            "_0"."__tulle_1" AS "__tulle_3",
            "_0"."__tulle_2" AS "__tulle_4"
          FROM (
            SELECT
              "t"."a" AS "a",
              CAST("t"."a" AS BIGINT) AS "__tulle_1",
              CAST("t"."b" AS BIGINT) AS "__tulle_2"
            FROM "knows" AS "t"
            WHERE
              NOT "t"."a" IS NULL AND NOT "t"."b" IS NULL
          ) AS "_0"
        ) AS "__tulle_9"
      ) AS "__tulle_13"
      UNION
      SELECT
        "__tulle_14"."b" AS "a",
        "__tulle_14"."__tulle_7" AS "__tulle_11",
        "__tulle_14"."__tulle_8" AS "__tulle_12"
      FROM (
        SELECT
          "__tulle_10"."b" AS "b",
          "__tulle_10"."__tulle_7",
          "__tulle_10"."__tulle_8"
        FROM (
          SELECT
            "_1"."b" AS "b",
            "_1"."__tulle_5" AS "__tulle_7",
            "_1"."__tulle_6" AS "__tulle_8"
          FROM (
            SELECT
              "t"."b" AS "b",
              CAST("t"."a" AS BIGINT) AS "__tulle_5",
              CAST("t"."b" AS BIGINT) AS "__tulle_6"
            FROM "knows" AS "t"
            WHERE
              NOT "t"."a" IS NULL AND NOT "t"."b" IS NULL
          ) AS "_1"
        ) AS "__tulle_10"
      ) AS "__tulle_14"
    ) AS "__tulle_15"
  ) AS "_2"
) AS "__tulle_19"
