-- a decision that equals the one before is counted on the row of the first one
CREATE TABLE `series` (
	`seq` integer PRIMARY KEY NOT NULL,
	`node` text NOT NULL,
	`times` integer NOT NULL,
	`last_at_ms` integer NOT NULL,
	`last_snapshot_id` text,
	`last_id` text
);
--> statement-breakpoint
CREATE INDEX `series_by_time` ON `series` (`last_at_ms`);--> statement-breakpoint
CREATE INDEX `series_by_node` ON `series` (`node`);--> statement-breakpoint
CREATE INDEX `series_by_snapshot` ON `series` (`last_snapshot_id`) WHERE last_snapshot_id IS NOT NULL;
--> statement-breakpoint
-- each repetition counts in its hour, as a separate row did before. The time of the node's newest decision is that of the last repetition
CREATE TRIGGER `series_begun` AFTER INSERT ON `series` BEGIN
	UPDATE `latest` SET `decided_at_ms` = NEW.`last_at_ms`
	WHERE (`node`, `kind`, `decision_id`) = (SELECT `node`, `kind`, `id` FROM `decisions` WHERE `seq` = NEW.`seq`);
	INSERT INTO `hours` SELECT NEW.`last_at_ms` / 3600000 * 3600000, `node`, (NEW.`times` - 1),
		(NEW.`times` - 1) * (`verdict` IN ('refused', 'kubelet-refuses')), (NEW.`times` - 1) * (`verdict` IN ('under-pressure', 'reclaims', 'evicts')),
		(NEW.`times` - 1) * (`verdict` = 'evicts'), (NEW.`times` - 1) * (`verdict` = 'removes')
	FROM `decisions` WHERE `seq` = NEW.`seq`
	ON CONFLICT (`hour_ms`, `node`) DO UPDATE SET
		`decisions` = `decisions` + excluded.`decisions`, `refused` = `refused` + excluded.`refused`,
		`pressured` = `pressured` + excluded.`pressured`, `evicted` = `evicted` + excluded.`evicted`, `removed` = `removed` + excluded.`removed`;
	INSERT INTO `refusals` SELECT NEW.`last_at_ms` / 3600000 * 3600000, `node`, coalesce(`reason`, `verdict`), (NEW.`times` - 1)
	FROM `decisions` WHERE `seq` = NEW.`seq` AND `verdict` IN ('refused', 'kubelet-refuses')
	ON CONFLICT (`hour_ms`, `node`, `reason`) DO UPDATE SET `count` = `count` + excluded.`count`;
	UPDATE `texts` SET `used_at_ms` = NEW.`last_at_ms` WHERE `used_at_ms` < NEW.`last_at_ms` AND `id` IN
		(SELECT json_extract(`json_each`.`value`, '$[1]') FROM `decisions`, json_each(coalesce(`decisions`.`parts`, '[]')) WHERE `seq` = NEW.`seq`);
END;
--> statement-breakpoint
CREATE TRIGGER `series_counted` AFTER UPDATE OF `times` ON `series` BEGIN
	UPDATE `latest` SET `decided_at_ms` = NEW.`last_at_ms`
	WHERE (`node`, `kind`, `decision_id`) = (SELECT `node`, `kind`, `id` FROM `decisions` WHERE `seq` = NEW.`seq`);
	INSERT INTO `hours` SELECT NEW.`last_at_ms` / 3600000 * 3600000, `node`, (NEW.`times` - OLD.`times`),
		(NEW.`times` - OLD.`times`) * (`verdict` IN ('refused', 'kubelet-refuses')), (NEW.`times` - OLD.`times`) * (`verdict` IN ('under-pressure', 'reclaims', 'evicts')),
		(NEW.`times` - OLD.`times`) * (`verdict` = 'evicts'), (NEW.`times` - OLD.`times`) * (`verdict` = 'removes')
	FROM `decisions` WHERE `seq` = NEW.`seq`
	ON CONFLICT (`hour_ms`, `node`) DO UPDATE SET
		`decisions` = `decisions` + excluded.`decisions`, `refused` = `refused` + excluded.`refused`,
		`pressured` = `pressured` + excluded.`pressured`, `evicted` = `evicted` + excluded.`evicted`, `removed` = `removed` + excluded.`removed`;
	INSERT INTO `refusals` SELECT NEW.`last_at_ms` / 3600000 * 3600000, `node`, coalesce(`reason`, `verdict`), (NEW.`times` - OLD.`times`)
	FROM `decisions` WHERE `seq` = NEW.`seq` AND `verdict` IN ('refused', 'kubelet-refuses')
	ON CONFLICT (`hour_ms`, `node`, `reason`) DO UPDATE SET `count` = `count` + excluded.`count`;
END;
--> statement-breakpoint
-- a text is in use while its row still counts repetitions. The time of use is updated at most every half hour
CREATE TRIGGER `series_in_use` AFTER UPDATE OF `last_at_ms` ON `series` WHEN NEW.`last_at_ms` / 1800000 > OLD.`last_at_ms` / 1800000 BEGIN
	UPDATE `texts` SET `used_at_ms` = NEW.`last_at_ms` WHERE `used_at_ms` < NEW.`last_at_ms` AND `id` IN
		(SELECT json_extract(`json_each`.`value`, '$[1]') FROM `decisions`, json_each(coalesce(`decisions`.`parts`, '[]')) WHERE `seq` = NEW.`seq`);
END;
--> statement-breakpoint
CREATE TRIGGER `series_moved_on` AFTER UPDATE OF `last_snapshot_id` ON `series` WHEN OLD.`last_snapshot_id` IS NOT NEW.`last_snapshot_id` BEGIN
	INSERT INTO `unchecked_snapshots` SELECT `seq` FROM `snapshots` WHERE `id` = OLD.`last_snapshot_id` ON CONFLICT (`seq`) DO NOTHING;
END;
--> statement-breakpoint
CREATE TRIGGER `series_gone` AFTER DELETE ON `series` BEGIN
	INSERT INTO `unchecked_snapshots` SELECT `seq` FROM `snapshots` WHERE `id` = OLD.`last_snapshot_id` ON CONFLICT (`seq`) DO NOTHING;
END;
--> statement-breakpoint
CREATE TRIGGER `decisions_gone_with_series` AFTER DELETE ON `decisions` BEGIN
	DELETE FROM `series` WHERE `seq` = OLD.`seq`;
END;
