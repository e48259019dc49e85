CREATE TABLE `hours` (
	`hour_ms` integer NOT NULL,
	`node` text NOT NULL,
	`decisions` integer NOT NULL,
	`refused` integer NOT NULL,
	`pressured` integer NOT NULL,
	`evicted` integer NOT NULL,
	`removed` integer NOT NULL,
	PRIMARY KEY(`hour_ms`, `node`)
);
--> statement-breakpoint
CREATE TABLE `latest` (
	`node` text NOT NULL,
	`kind` text NOT NULL,
	`decision_id` text NOT NULL,
	`verdict` text NOT NULL,
	`decided_at_ms` integer NOT NULL,
	PRIMARY KEY(`node`, `kind`)
);
--> statement-breakpoint
INSERT INTO `latest` SELECT `node`, `kind`, `id`, `verdict`, max(`decided_at_ms`) FROM `decisions` GROUP BY `node`, `kind`;
--> statement-breakpoint
INSERT INTO `hours` SELECT `decided_at_ms` / 3600000 * 3600000, `node`, count(*),
	sum(`verdict` IN ('refused', 'kubelet-refuses')), sum(`verdict` IN ('under-pressure', 'reclaims', 'evicts')),
	sum(`verdict` = 'evicts'), sum(`verdict` = 'removes')
FROM `decisions` GROUP BY 1, 2;
--> statement-breakpoint
CREATE TRIGGER `decisions_counted` AFTER INSERT ON `decisions` BEGIN
	INSERT INTO `latest` VALUES (NEW.`node`, NEW.`kind`, NEW.`id`, NEW.`verdict`, NEW.`decided_at_ms`)
	ON CONFLICT (`node`, `kind`) DO UPDATE SET
		`decision_id` = excluded.`decision_id`, `verdict` = excluded.`verdict`, `decided_at_ms` = excluded.`decided_at_ms`
	WHERE excluded.`decided_at_ms` >= `latest`.`decided_at_ms`;
	INSERT INTO `hours` VALUES (NEW.`decided_at_ms` / 3600000 * 3600000, NEW.`node`, 1,
		NEW.`verdict` IN ('refused', 'kubelet-refuses'), NEW.`verdict` IN ('under-pressure', 'reclaims', 'evicts'),
		NEW.`verdict` = 'evicts', NEW.`verdict` = 'removes')
	ON CONFLICT (`hour_ms`, `node`) DO UPDATE SET
		`decisions` = `decisions` + 1, `refused` = `refused` + excluded.`refused`, `pressured` = `pressured` + excluded.`pressured`,
		`evicted` = `evicted` + excluded.`evicted`, `removed` = `removed` + excluded.`removed`;
END;
