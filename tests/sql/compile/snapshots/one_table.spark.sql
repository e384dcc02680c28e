SELECT
  `__tulle_4`.`__tulle_2` AS `__tulle_owner_0`,
  CAST(COUNT(*) AS DOUBLE) AS `__tulle_above`
FROM (
  SELECT
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
    `_0`.`o_date` < CAST('1995-01-01' AS DATE)
) AS `__tulle_4`
GROUP BY
  `__tulle_4`.`__tulle_2`
