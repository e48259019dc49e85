CREATE TABLE `removals` (
	`seq` integer PRIMARY KEY NOT NULL,
	`node` text NOT NULL,
	`kind` text NOT NULL,
	`target` text NOT NULL,
	`object_id` text NOT NULL,
	`runtime_handler` text NOT NULL,
	`names` text NOT NULL,
	`size_bytes` integer,
	`why` text NOT NULL,
	`operation` text NOT NULL,
	`end` text NOT NULL,
	`message` text,
	`at_ms` integer NOT NULL,
	`decision_id` text NOT NULL,
	`again_at_ms` integer,
	`pod_namespace` text,
	`pod_name` text,
	`pod_uid` text,
	`container_name` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `removals_key` ON `removals` (`node`,`object_id`,`target`,`runtime_handler`,`at_ms`);--> statement-breakpoint
CREATE INDEX `removals_by_node` ON `removals` (`node`,`at_ms`,`seq`,`kind`,`target`,`end`);--> statement-breakpoint
CREATE INDEX `removals_by_time` ON `removals` (`at_ms`,`seq`);