CREATE TABLE "decision_log" (
	"id" bigint PRIMARY KEY NOT NULL,
	"delivered_seq" bigint NOT NULL,
	"lost" bigint NOT NULL,
	"holder" text COLLATE "C",
	"held_until_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE OR REPLACE FUNCTION decisions_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF is_moving() THEN RETURN NULL; END IF;
	UPDATE row_counts SET rows = rows - 1 WHERE what = 'decisions' AND node = OLD.node;
	UPDATE decision_log SET lost = lost + 1 WHERE id = 1 AND delivered_seq < OLD.seq;
	PERFORM check_snapshot(OLD.snapshot_id);
	DELETE FROM texts WHERE id > 'decision/' || OLD.id || '/' AND id < 'decision/' || OLD.id || '0';
	DELETE FROM series WHERE seq = OLD.seq;
	DELETE FROM results WHERE decision_id = OLD.id;
	DELETE FROM idempotency WHERE decision_id = OLD.id;
	RETURN NULL;
END $$;
