SELECT
  `__tulle_4`.`__tulle_group`,
  `__tulle_4`.`__tulle_2` AS `__tulle_owner_0`,
  CAST(COUNT(*) AS DOUBLE) AS `__tulle_above`
FROM (
  SELECT
    CASE
      WHEN CAST(EXTRACT(YEAR FROM `_0`.`o_date`) AS BIGINT) = 1994
      THEN 0
      WHEN CAST(EXTRACT(YEAR FROM `_0`.`o_date`) AS BIGINT) = 1995
      THEN 1
    END AS `__tulle_group`,
    `_0`.`__tulle_1` AS `__tulle_2`
  FROM (
    SELECT
      `t`.`o_date` AS `o_date`,
      CAST(`t`.`o_custkey` AS BIGINT) AS `__tulle_1`
    FROM `orders` AS `t`
    WHERE
      NOT `t`.`o_custkey` IS NULL
  ) AS `_0`
  WHERE
    (
      CAST(EXTRACT(YEAR FROM `_0`.`o_date`) AS BIGINT) = 1994
      OR CAST(EXTRACT(YEAR FROM `_0`.`o_date`) AS BIGINT) = 1995
    )
  DISTRIBUTE BY
    `__tulle_2`
) AS `__tulle_4`
GROUP BY
  `__tulle_4`.`__tulle_group`,
  `__tulle_4`.`__tulle_2`
