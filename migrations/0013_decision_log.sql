-- the number of the last decision that was delivered to the receiver of the decision log
CREATE TABLE `decision_log` (
	`id` integer PRIMARY KEY NOT NULL,
	`delivered_seq` integer NOT NULL,
	`lost` integer NOT NULL,
	`holder` text,
	`held_until_ms` integer NOT NULL
);
--> statement-breakpoint
-- the next row may get the number of a deleted newest row. The log must not be ahead of it, and the delivering process must read its position again
CREATE TRIGGER `decisions_gone_before_log` AFTER DELETE ON `decisions` WHEN EXISTS (SELECT 1 FROM `decision_log`) BEGIN
	UPDATE `decision_log` SET `lost` = `lost` + 1 WHERE `delivered_seq` < OLD.`seq`;
	UPDATE `decision_log` SET `delivered_seq` = min(`delivered_seq`, coalesce((SELECT max(`seq`) FROM `decisions`), 0)), `holder` = NULL
	WHERE OLD.`seq` > coalesce((SELECT max(`seq`) FROM `decisions`), 0);
END;
