-- the policy version of a node's newest decisions, which the fleet page shows
DROP TRIGGER `decisions_counted`;
--> statement-breakpoint
ALTER TABLE `latest` ADD `policy_version` text DEFAULT '' NOT NULL;
--> statement-breakpoint
UPDATE `latest` SET `policy_version` = coalesce((SELECT `policy_version` FROM `decisions` WHERE `id` = `decision_id`), '');
--> statement-breakpoint
CREATE TRIGGER `decisions_counted` AFTER INSERT ON `decisions` BEGIN
	INSERT INTO `latest` (`node`, `kind`, `decision_id`, `verdict`, `decided_at_ms`, `policy_version`)
	VALUES (NEW.`node`, NEW.`kind`, NEW.`id`, NEW.`verdict`, NEW.`decided_at_ms`, NEW.`policy_version`)
	ON CONFLICT (`node`, `kind`) DO UPDATE SET
		`decision_id` = excluded.`decision_id`, `verdict` = excluded.`verdict`, `decided_at_ms` = excluded.`decided_at_ms`,
		`policy_version` = excluded.`policy_version`
	WHERE excluded.`decided_at_ms` >= `latest`.`decided_at_ms`;
	INSERT INTO `hours` VALUES (NEW.`decided_at_ms` / 3600000 * 3600000, NEW.`node`, 1,
		NEW.`verdict` IN ('refused', 'kubelet-refuses'), NEW.`verdict` IN ('under-pressure', 'reclaims', 'evicts'),
		NEW.`verdict` = 'evicts', NEW.`verdict` = 'removes')
	ON CONFLICT (`hour_ms`, `node`) DO UPDATE SET
		`decisions` = `decisions` + 1, `refused` = `refused` + excluded.`refused`, `pressured` = `pressured` + excluded.`pressured`,
		`evicted` = `evicted` + excluded.`evicted`, `removed` = `removed` + excluded.`removed`;
END;
