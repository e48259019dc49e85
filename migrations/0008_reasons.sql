-- the kubelet's reason is stored beside the verdict, for searches and for counts of refusals by reason
CREATE TABLE `refusals` (
	`hour_ms` integer NOT NULL,
	`node` text NOT NULL,
	`reason` text NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`hour_ms`, `node`, `reason`)
) WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `decisions` ADD `reason` text;--> statement-breakpoint
CREATE INDEX `decisions_by_reason` ON `decisions` (`reason`,`decided_at_ms`,`seq`,`node`,`kind`,`verdict`) WHERE reason IS NOT NULL;--> statement-breakpoint
CREATE INDEX `decisions_by_verdict` ON `decisions` (`verdict`,`decided_at_ms`,`seq`,`node`,`kind`) WHERE verdict NOT IN ('decided', 'calm', 'keeps');--> statement-breakpoint
ALTER TABLE `latest` ADD `reason` text;--> statement-breakpoint
ALTER TABLE `latest` ADD `summary` text;--> statement-breakpoint
ALTER TABLE `nodes` ADD `labels` text;--> statement-breakpoint
ALTER TABLE `nodes` ADD `kubelet_version` text;--> statement-breakpoint
-- SQL cannot read the reasons of earlier decisions, since most of their bodies are compressed: their verdict is used instead
INSERT INTO `refusals` SELECT `decided_at_ms` / 3600000 * 3600000, `node`, `verdict`, count(*)
FROM `decisions` WHERE `verdict` IN ('refused', 'kubelet-refuses') GROUP BY 1, 2, 3;
--> statement-breakpoint
DROP TRIGGER `decisions_counted`;
--> statement-breakpoint
CREATE TRIGGER `decisions_counted` AFTER INSERT ON `decisions` BEGIN
	INSERT INTO `latest` (`node`, `kind`, `decision_id`, `verdict`, `decided_at_ms`, `policy_version`, `reason`)
	VALUES (NEW.`node`, NEW.`kind`, NEW.`id`, NEW.`verdict`, NEW.`decided_at_ms`, NEW.`policy_version`, NEW.`reason`)
	ON CONFLICT (`node`, `kind`) DO UPDATE SET
		`decision_id` = excluded.`decision_id`, `verdict` = excluded.`verdict`, `decided_at_ms` = excluded.`decided_at_ms`,
		`policy_version` = excluded.`policy_version`, `reason` = excluded.`reason`, `summary` = NULL
	WHERE excluded.`decided_at_ms` >= `latest`.`decided_at_ms`;
	INSERT INTO `hours` VALUES (NEW.`decided_at_ms` / 3600000 * 3600000, NEW.`node`, 1,
		NEW.`verdict` IN ('refused', 'kubelet-refuses'), NEW.`verdict` IN ('under-pressure', 'reclaims', 'evicts'),
		NEW.`verdict` = 'evicts', NEW.`verdict` = 'removes')
	ON CONFLICT (`hour_ms`, `node`) DO UPDATE SET
		`decisions` = `decisions` + 1, `refused` = `refused` + excluded.`refused`, `pressured` = `pressured` + excluded.`pressured`,
		`evicted` = `evicted` + excluded.`evicted`, `removed` = `removed` + excluded.`removed`;
	INSERT INTO `refusals` SELECT NEW.`decided_at_ms` / 3600000 * 3600000, NEW.`node`, coalesce(NEW.`reason`, NEW.`verdict`), 1
	WHERE NEW.`verdict` IN ('refused', 'kubelet-refuses')
	ON CONFLICT (`hour_ms`, `node`, `reason`) DO UPDATE SET `count` = `count` + 1;
END;
