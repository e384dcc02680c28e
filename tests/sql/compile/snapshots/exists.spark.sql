SELECT DISTINCT
  DENSE_RANK() OVER (
    ORDER BY `__tulle_11`.`__tulle_8` NULLS LAST, `__tulle_11`.`__tulle_9` NULLS LAST
  ) AS `__tulle_tuple`,
  CAST(`__tulle_11`.`__tulle_10` AS DOUBLE) AS `__tulle_times`,
  `__tulle_11`.`__tulle_6` AS `__tulle_owner_0`,
  `__tulle_11`.`__tulle_7` AS `__tulle_owner_1`
FROM (
  SELECT
    `_1`.`__tulle_1` AS `__tulle_6`,
    `_0`.`__tulle_2` AS `__tulle_7`,
    `_1`.`c_custkey` AS `__tulle_8`,
    `_1`.`__tulle_1` AS `__tulle_9`,
    CAST(`_1`.`__tulle_5` AS DOUBLE) AS `__tulle_10`
  FROM (
    SELECT
      `__tulle_4`.`c_custkey`,
      `__tulle_4`.`__tulle_1`,
      COUNT(*) AS `__tulle_5`
    FROM (
      SELECT
        `__tulle_3`.`c_custkey` AS `c_custkey`,
        `__tulle_3`.`__tulle_1`
      FROM (
        SELECT
          `t`.`c_custkey` AS `c_custkey`,
          CAST(`t`.`c_custkey` AS BIGINT) AS `__tulle_1`
        FROM `customer` AS `t`
        WHERE
          NOT `t`.`c_custkey` IS NULL
      ) AS `__tulle_3`
    ) AS `__tulle_4`
    GROUP BY
      `__tulle_4`.`c_custkey`,
      `__tulle_4`.`__tulle_1`
  ) AS `_1`
  JOIN (
    SELECT
      `t`.`o_custkey` AS `o_custkey`,
      CAST(`t`.`o_custkey` AS BIGINT) AS `__tulle_2`
    FROM `orders` AS `t`
    WHERE
      NOT `t`.`o_custkey` IS NULL
  ) AS `_0`
    ON `_0`.`o_custkey` = `_1`.`c_custkey`
) AS `__tulle_11`
