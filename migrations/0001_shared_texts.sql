CREATE TABLE `texts` (
	`id` text PRIMARY KEY NOT NULL,
	`used_at_ms` integer NOT NULL,
	`bytes` integer NOT NULL,
	`encoding` text NOT NULL,
	`body` blob NOT NULL
);
--> statement-breakpoint
CREATE INDEX `texts_by_use` ON `texts` (`used_at_ms`,`id`);--> statement-breakpoint
ALTER TABLE `decisions` ADD `parts` text;--> statement-breakpoint
ALTER TABLE `snapshots` ADD `parts` text;
