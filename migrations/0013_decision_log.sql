-- how far the decisions are delivered to whoever reads the decision log
CREATE TABLE `decision_log` (
	`id` integer PRIMARY KEY NOT NULL,
	`delivered_seq` integer NOT NULL,
	`lost` integer NOT NULL,
	`holder` text,
	`held_until_ms` integer NOT NULL
);
--> statement-breakpoint
-- the next row gets the number of the newest one that went: the log must not be ahead of it, and whoever delivers has to look again
CREATE TRIGGER `decisions_gone_before_log` AFTER DELETE ON `decisions` WHEN EXISTS (SELECT 1 FROM `decision_log`) BEGIN
	UPDATE `decision_log` SET `lost` = `lost` + 1 WHERE `delivered_seq` < OLD.`seq`;
	UPDATE `decision_log` SET `delivered_seq` = min(`delivered_seq`, coalesce((SELECT max(`seq`) FROM `decisions`), 0)), `holder` = NULL
	WHERE OLD.`seq` > coalesce((SELECT max(`seq`) FROM `decisions`), 0);
END;
