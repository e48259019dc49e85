CREATE TABLE `outcomes` (
	`seq` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`node` text NOT NULL,
	`kind` text NOT NULL,
	`verdict` text NOT NULL,
	`at_ms` integer NOT NULL,
	`recorded_at_ms` integer NOT NULL,
	`snapshot_id` text,
	`pod_namespace` text,
	`pod_name` text,
	`pod_uid` text,
	`bytes` integer NOT NULL,
	`encoding` text NOT NULL,
	`body` blob NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `outcomes_id` ON `outcomes` (`id`);--> statement-breakpoint
CREATE INDEX `outcomes_by_time` ON `outcomes` (`at_ms`,`seq`,`kind`,`verdict`);--> statement-breakpoint
CREATE INDEX `outcomes_by_node` ON `outcomes` (`node`,`at_ms`,`seq`,`kind`,`verdict`);--> statement-breakpoint
CREATE INDEX `outcomes_by_snapshot` ON `outcomes` (`snapshot_id`) WHERE snapshot_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `snapshots_by_node` ON `snapshots` (`node`,`observed_at_ms`,`seq`,`id`);
--> statement-breakpoint
CREATE TRIGGER `outcomes_kept` AFTER INSERT ON `outcomes` BEGIN
	INSERT INTO `row_counts` VALUES ('outcomes', NEW.`node`, 1) ON CONFLICT (`what`, `node`) DO UPDATE SET `rows` = `rows` + 1;
END;
--> statement-breakpoint
CREATE TRIGGER `outcomes_gone` AFTER DELETE ON `outcomes` BEGIN
	UPDATE `row_counts` SET `rows` = `rows` - 1 WHERE `what` = 'outcomes' AND `node` = OLD.`node`;
	DELETE FROM `row_counts` WHERE `what` = 'outcomes' AND `node` = OLD.`node` AND `rows` = 0;
	INSERT INTO `unchecked_snapshots` SELECT `seq` FROM `snapshots` WHERE `id` = OLD.`snapshot_id` ON CONFLICT (`seq`) DO NOTHING;
END;
