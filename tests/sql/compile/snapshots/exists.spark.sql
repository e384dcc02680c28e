SELECT
  `__tulle_6`.`__tulle_4` AS `__tulle_owner_0`,
  CAST(COUNT(*) AS DOUBLE) AS `__tulle_above`
FROM (
  SELECT
    `_1`.`__tulle_1` AS `__tulle_4`
  FROM (
    SELECT
      `t`.`c_custkey` AS `c_custkey`,
      CAST(`t`.`c_custkey` AS BIGINT) AS `__tulle_1`
    FROM `customer` AS `t`
    WHERE
      NOT `t`.`c_custkey` IS NULL
  ) AS `_1`
  WHERE
    EXISTS(
      SELECT
        1 AS `__tulle_3`
      FROM (
        SELECT
          `t`.`o_custkey` AS `o_custkey`,
          CAST(`t`.`o_custkey` AS BIGINT) AS `__tulle_2`
        FROM `orders` AS `t`
        WHERE
          NOT `t`.`o_custkey` IS NULL
      ) AS `_0`
      WHERE
        `_0`.`o_custkey` = `_1`.`c_custkey` AND `_0`.`__tulle_2` = `_1`.`__tulle_1`
    )
) AS `__tulle_6`
GROUP BY
  `__tulle_6`.`__tulle_4`
