-- renames columns to the words that Kubernetes uses
ALTER TABLE `removals` RENAME COLUMN `why` TO `reason`;
--> statement-breakpoint
ALTER TABLE `removals` RENAME COLUMN `end` TO `result`;
--> statement-breakpoint
ALTER TABLE `removals` RENAME COLUMN `again_at_ms` TO `pulled_again_at_ms`;
--> statement-breakpoint
ALTER TABLE `series` RENAME COLUMN `times` TO `count`;
--> statement-breakpoint
ALTER TABLE `row_counts` RENAME COLUMN `what` TO `kind`;
