SELECT DISTINCT
  DENSE_RANK() OVER (ORDER BY "__tulle_4"."__tulle_value_0") AS "__tulle_tuple",
  "__tulle_4"."__tulle_2" AS "__tulle_owner_0"
FROM (
  SELECT DISTINCT
    "_0"."c_name" AS "__tulle_value_0",
    "_0"."__tulle_1" AS "__tulle_2"
  FROM (
    SELECT
      (
        (
          "t"."c_name"
        ) COLLATE "default"
      ) AS "c_name",
      CAST("t"."c_custkey" AS BIGINT) AS "__tulle_1"
    FROM "customer" AS "t"
    WHERE
      NOT "t"."c_custkey" IS NULL
  ) AS "_0"
  WHERE
    NOT (
      "_0"."c_name"
    ) IS NULL
) AS "__tulle_4"
