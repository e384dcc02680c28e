SELECT
  `__tulle_20`.`__tulle_17` AS `__tulle_owner_0`,
  `__tulle_20`.`__tulle_18` AS `__tulle_owner_1`,
  `__tulle_20`.`__tulle_19` AS `__tulle_owner_2`,
  CAST(COUNT(*) AS DOUBLE) AS `__tulle_above`
FROM (
  SELECT
    LEAST(`__tulle_16`.`__tulle_13`, `__tulle_16`.`__tulle_14`) AS `__tulle_17`,
    GREATEST(`__tulle_16`.`__tulle_13`, `__tulle_16`.`__tulle_14`) AS `__tulle_18`,
    `__tulle_16`.`__tulle_15` AS `__tulle_19`
  FROM (
    SELECT
      `__tulle_12`.`__tulle_9` AS `__tulle_13`,
      LEAST(`__tulle_12`.`__tulle_10`, `__tulle_12`.`__tulle_11`) AS `__tulle_14`,
      GREATEST(`__tulle_12`.`__tulle_10`, `__tulle_12`.`__tulle_11`) AS `__tulle_15`
    FROM (
      SELECT
        LEAST(`__tulle_8`.`__tulle_5`, `__tulle_8`.`__tulle_6`) AS `__tulle_9`,
        GREATEST(`__tulle_8`.`__tulle_5`, `__tulle_8`.`__tulle_6`) AS `__tulle_10`,
        `__tulle_8`.`__tulle_7` AS `__tulle_11`
      FROM (
        SELECT
          `_0`.`__tulle_1` AS `__tulle_5`,
          `_0`.`__tulle_2` AS `__tulle_6`,
          `_1`.`__tulle_4` AS `__tulle_7`
        FROM (
          SELECT
            `t`.`b` AS `b`,
            CAST(`t`.`a` AS BIGINT) AS `__tulle_1`,
            CAST(`t`.`b` AS BIGINT) AS `__tulle_2`
          FROM `knows` AS `t`
          WHERE
            NOT `t`.`a` IS NULL AND NOT `t`.`b` IS NULL
        ) AS `_0`
        JOIN (
          SELECT
            `t`.`a` AS `a`,
            CAST(`t`.`a` AS BIGINT) AS `__tulle_3`,
            CAST(`t`.`b` AS BIGINT) AS `__tulle_4`
          FROM `knows` AS `t`
          WHERE
            NOT `t`.`a` IS NULL AND NOT `t`.`b` IS NULL
        ) AS `_1`
          ON `_0`.`b` = `_1`.`a`
      ) AS `__tulle_8`
    ) AS `__tulle_12`
  ) AS `__tulle_16`
) AS `__tulle_20`
GROUP BY
  `__tulle_20`.`__tulle_17`,
  `__tulle_20`.`__tulle_18`,
  `__tulle_20`.`__tulle_19`
