CREATE TABLE `fact_parts` (
	`node` text NOT NULL,
	`key` text NOT NULL,
	`part` integer NOT NULL,
	`value` text NOT NULL,
	`updated_at_ms` integer NOT NULL,
	PRIMARY KEY(`node`, `key`, `part`)
);
--> statement-breakpoint
CREATE TABLE `row_counts` (
	`what` text NOT NULL,
	`node` text NOT NULL,
	`rows` integer NOT NULL,
	PRIMARY KEY(`what`, `node`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `row_counts_none` ON `row_counts` (`node`) WHERE what = 'decisions' AND rows = 0;--> statement-breakpoint
CREATE TABLE `sweeps` (
	`id` integer PRIMARY KEY NOT NULL,
	`at_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `unchecked_snapshots` (
	`seq` integer PRIMARY KEY NOT NULL
);
--> statement-breakpoint
ALTER TABLE `health` ADD `filler` blob;
--> statement-breakpoint
INSERT INTO `row_counts` SELECT 'decisions', `name`, (SELECT count(*) FROM `decisions` WHERE `node` = `name`) FROM `nodes`;
--> statement-breakpoint
INSERT INTO `row_counts` SELECT 'decisions', `node`, count(*) FROM `decisions` WHERE `node` NOT IN (SELECT `name` FROM `nodes`) GROUP BY `node`;
--> statement-breakpoint
INSERT INTO `row_counts` SELECT `kind`, `node`, count(*) FROM `removals` GROUP BY `kind`, `node`;
--> statement-breakpoint
INSERT INTO `unchecked_snapshots` SELECT `seq` FROM `snapshots`;
--> statement-breakpoint
CREATE TRIGGER `nodes_kept` AFTER INSERT ON `nodes` BEGIN
	INSERT INTO `row_counts` VALUES ('decisions', NEW.`name`, 0) ON CONFLICT (`what`, `node`) DO NOTHING;
END;
--> statement-breakpoint
CREATE TRIGGER `nodes_moved_on` AFTER UPDATE OF `last_snapshot_id` ON `nodes` WHEN OLD.`last_snapshot_id` IS NOT NEW.`last_snapshot_id` BEGIN
	INSERT INTO `unchecked_snapshots` SELECT `seq` FROM `snapshots` WHERE `id` = OLD.`last_snapshot_id` ON CONFLICT (`seq`) DO NOTHING;
END;
--> statement-breakpoint
-- facts and counts of a node are deleted with the node
CREATE TRIGGER `nodes_gone` AFTER DELETE ON `nodes` BEGIN
	DELETE FROM `facts` WHERE `node` = OLD.`name`;
	DELETE FROM `fact_parts` WHERE `node` = OLD.`name`;
	DELETE FROM `latest` WHERE `node` = OLD.`name`;
	DELETE FROM `row_counts` WHERE `what` = 'decisions' AND `node` = OLD.`name` AND `rows` = 0;
	INSERT INTO `unchecked_snapshots` SELECT `seq` FROM `snapshots` WHERE `id` = OLD.`last_snapshot_id` ON CONFLICT (`seq`) DO NOTHING;
END;
--> statement-breakpoint
CREATE TRIGGER `decisions_kept` AFTER INSERT ON `decisions` BEGIN
	INSERT INTO `row_counts` VALUES ('decisions', NEW.`node`, 1) ON CONFLICT (`what`, `node`) DO UPDATE SET `rows` = `rows` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `decisions_gone` AFTER DELETE ON `decisions` BEGIN
	UPDATE `row_counts` SET `rows` = `rows` - 1 WHERE `what` = 'decisions' AND `node` = OLD.`node`;
	INSERT INTO `unchecked_snapshots` SELECT `seq` FROM `snapshots` WHERE `id` = OLD.`snapshot_id` ON CONFLICT (`seq`) DO NOTHING;
	DELETE FROM `texts` WHERE `id` > 'decision/' || OLD.`id` || '/' AND `id` < 'decision/' || OLD.`id` || '0';
END;
--> statement-breakpoint
CREATE TRIGGER `removals_kept` AFTER INSERT ON `removals` BEGIN
	INSERT INTO `row_counts` VALUES (NEW.`kind`, NEW.`node`, 1) ON CONFLICT (`what`, `node`) DO UPDATE SET `rows` = `rows` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `removals_gone` AFTER DELETE ON `removals` BEGIN
	UPDATE `row_counts` SET `rows` = `rows` - 1 WHERE `what` = OLD.`kind` AND `node` = OLD.`node`;
	DELETE FROM `row_counts` WHERE `what` = OLD.`kind` AND `node` = OLD.`node` AND `rows` = 0;
END;
--> statement-breakpoint
CREATE TRIGGER `snapshots_kept` AFTER INSERT ON `snapshots` BEGIN
	INSERT INTO `unchecked_snapshots` VALUES (NEW.`seq`) ON CONFLICT (`seq`) DO NOTHING;
END;
--> statement-breakpoint
CREATE TRIGGER `snapshots_gone` AFTER DELETE ON `snapshots` BEGIN
	DELETE FROM `texts` WHERE `id` > 'snapshot/' || OLD.`id` || '/' AND `id` < 'snapshot/' || OLD.`id` || '0';
END;
