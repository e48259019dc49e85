-- refusals and evictions by kubelets can be searched by reason, and are counted by the hour
CREATE TABLE `outcome_hours` (
	`hour_ms` integer NOT NULL,
	`node` text NOT NULL,
	`kind` text NOT NULL,
	`reason` text NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`hour_ms`, `node`, `kind`, `reason`)
) WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `nodes` ADD `conditions` text;--> statement-breakpoint
ALTER TABLE `outcomes` ADD `reason` text;--> statement-breakpoint
CREATE INDEX `outcomes_by_reason` ON `outcomes` (`reason`,`at_ms`,`seq`,`node`,`kind`,`verdict`) WHERE reason IS NOT NULL;--> statement-breakpoint
CREATE INDEX `outcomes_by_namespace` ON `outcomes` (`pod_namespace`,`at_ms`,`seq`,`kind`,`verdict`) WHERE pod_namespace IS NOT NULL;--> statement-breakpoint
CREATE INDEX `outcomes_by_pod_uid` ON `outcomes` (`pod_uid`) WHERE pod_uid IS NOT NULL;--> statement-breakpoint
CREATE INDEX `outcomes_by_pod_name` ON `outcomes` (`pod_name`,`pod_namespace`) WHERE pod_name IS NOT NULL;
--> statement-breakpoint
-- the reason of an earlier outcome follows from its kind or is in its body. If the body is compressed, the outcome has no reason
UPDATE `outcomes` SET `reason` = CASE `kind` WHEN 'eviction' THEN 'Evicted' WHEN 'preemption' THEN 'Preempting'
	WHEN 'admission' THEN nullif(json_extract(`body`, '$.outcome.reason'), '') WHEN 'resize' THEN json_extract(`body`, '$.outcome.reason')
	ELSE json_extract(`body`, '$.outcome.condition') END
WHERE `kind` IN ('eviction', 'preemption') OR (`kind` IN ('admission', 'resize', 'conditions') AND `encoding` = 'json' AND json_valid(`body`));
--> statement-breakpoint
INSERT INTO `outcome_hours` SELECT `at_ms` / 3600000 * 3600000, `node`, `kind`, `reason`, count(*)
FROM `outcomes` WHERE `reason` IS NOT NULL GROUP BY 1, 2, 3, 4;
--> statement-breakpoint
CREATE TRIGGER `outcomes_counted` AFTER INSERT ON `outcomes` WHEN NEW.`reason` IS NOT NULL BEGIN
	INSERT INTO `outcome_hours` VALUES (NEW.`at_ms` / 3600000 * 3600000, NEW.`node`, NEW.`kind`, NEW.`reason`, 1)
	ON CONFLICT (`hour_ms`, `node`, `kind`, `reason`) DO UPDATE SET `count` = `count` + 1;
END;
--> statement-breakpoint
-- the time of an outcome changes if it was also observed earlier: it is then counted in the other hour
CREATE TRIGGER `outcomes_moved` AFTER UPDATE OF `at_ms`, `reason` ON `outcomes`
WHEN (OLD.`at_ms` / 3600000, OLD.`reason`) IS NOT (NEW.`at_ms` / 3600000, NEW.`reason`) BEGIN
	UPDATE `outcome_hours` SET `count` = `count` - 1 WHERE `hour_ms` = OLD.`at_ms` / 3600000 * 3600000
		AND `node` = OLD.`node` AND `kind` = OLD.`kind` AND `reason` = OLD.`reason`;
	DELETE FROM `outcome_hours` WHERE `hour_ms` = OLD.`at_ms` / 3600000 * 3600000
		AND `node` = OLD.`node` AND `kind` = OLD.`kind` AND `reason` = OLD.`reason` AND `count` = 0;
	INSERT INTO `outcome_hours` SELECT NEW.`at_ms` / 3600000 * 3600000, NEW.`node`, NEW.`kind`, NEW.`reason`, 1
	WHERE NEW.`reason` IS NOT NULL
	ON CONFLICT (`hour_ms`, `node`, `kind`, `reason`) DO UPDATE SET `count` = `count` + 1;
END;
