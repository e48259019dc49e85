CREATE TABLE `decisions` (
	`seq` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`kind` text NOT NULL,
	`node` text NOT NULL,
	`snapshot_id` text,
	`policy_version` text NOT NULL,
	`verdict` text NOT NULL,
	`explain` text NOT NULL,
	`decided_at_ms` integer NOT NULL,
	`pod_namespace` text,
	`pod_name` text,
	`pod_uid` text,
	`bytes` integer NOT NULL,
	`encoding` text NOT NULL,
	`ask` text,
	`body` blob NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `decisions_id` ON `decisions` (`id`);--> statement-breakpoint
CREATE INDEX `decisions_by_time` ON `decisions` (`decided_at_ms`,`seq`,`kind`,`verdict`);--> statement-breakpoint
CREATE INDEX `decisions_by_node` ON `decisions` (`node`,`decided_at_ms`,`seq`,`kind`,`verdict`);--> statement-breakpoint
CREATE INDEX `decisions_by_snapshot` ON `decisions` (`snapshot_id`) WHERE snapshot_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `decisions_by_pod_uid` ON `decisions` (`pod_uid`) WHERE pod_uid IS NOT NULL;--> statement-breakpoint
CREATE INDEX `decisions_by_pod_name` ON `decisions` (`pod_name`,`pod_namespace`) WHERE pod_name IS NOT NULL;--> statement-breakpoint
CREATE TABLE `facts` (
	`node` text NOT NULL,
	`key` text NOT NULL,
	`value` text NOT NULL,
	`updated_at_ms` integer NOT NULL,
	PRIMARY KEY(`node`, `key`)
);
--> statement-breakpoint
CREATE TABLE `health` (
	`id` integer PRIMARY KEY NOT NULL,
	`checked_at_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `idempotency` (
	`key` text NOT NULL,
	`scope` text NOT NULL,
	`request_hash` text NOT NULL,
	`decision_id` text NOT NULL,
	`at_ms` integer NOT NULL,
	PRIMARY KEY(`key`, `scope`),
	FOREIGN KEY (`decision_id`) REFERENCES `decisions`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `idempotency_by_decision` ON `idempotency` (`decision_id`);--> statement-breakpoint
CREATE TABLE `nodes` (
	`name` text PRIMARY KEY NOT NULL,
	`first_seen_ms` integer NOT NULL,
	`last_seen_ms` integer NOT NULL,
	`boot_id` text,
	`last_snapshot_id` text,
	`last_sequence` integer
);
--> statement-breakpoint
CREATE TABLE `results` (
	`id` text PRIMARY KEY NOT NULL,
	`decision_id` text NOT NULL,
	`node` text NOT NULL,
	`seq` integer NOT NULL,
	`ok_count` integer NOT NULL,
	`failed_count` integer NOT NULL,
	`at_ms` integer NOT NULL,
	`bytes` integer NOT NULL,
	`encoding` text NOT NULL,
	`body` blob NOT NULL,
	FOREIGN KEY (`decision_id`) REFERENCES `decisions`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `results_by_decision` ON `results` (`decision_id`,`seq`,`id`);--> statement-breakpoint
CREATE TABLE `snapshots` (
	`seq` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`node` text NOT NULL,
	`observed_at_ms` integer,
	`sequence` integer,
	`boot_id` text,
	`stored_at_ms` integer NOT NULL,
	`bytes` integer NOT NULL,
	`encoding` text NOT NULL,
	`body` blob NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `snapshots_id` ON `snapshots` (`id`);--> statement-breakpoint
CREATE INDEX `snapshots_by_time` ON `snapshots` (`stored_at_ms`,`seq`,`id`);--> statement-breakpoint
CREATE TABLE `tokens` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`hash` text NOT NULL,
	`scopes` text NOT NULL,
	`node` text,
	`created_at_ms` integer NOT NULL,
	`revoked_at_ms` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `tokens_hash` ON `tokens` (`hash`);