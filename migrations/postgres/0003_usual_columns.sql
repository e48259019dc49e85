-- Renames columns to the words that Kubernetes uses. All writers share the advisory lock: the migration waits until none of them
-- holds a lock on a table, so it cannot deadlock with a writer
SET LOCAL statement_timeout = '10min';
--> statement-breakpoint
SELECT pg_advisory_xact_lock(7031002);
--> statement-breakpoint
LOCK TABLE removals, row_counts, series IN ACCESS EXCLUSIVE MODE;
--> statement-breakpoint
ALTER TABLE "removals" RENAME COLUMN "why" TO "reason";
--> statement-breakpoint
ALTER TABLE "removals" RENAME COLUMN "end" TO "result";
--> statement-breakpoint
ALTER TABLE "removals" RENAME COLUMN "again_at_ms" TO "pulled_again_at_ms";
--> statement-breakpoint
ALTER TABLE "series" RENAME COLUMN "times" TO "count";
--> statement-breakpoint
ALTER TABLE "row_counts" RENAME COLUMN "what" TO "kind";
--> statement-breakpoint
ALTER TABLE "row_counts" RENAME CONSTRAINT "row_counts_what_node_pk" TO "row_counts_kind_node_pk";
--> statement-breakpoint
CREATE OR REPLACE FUNCTION count_row(of_what text, of_node text) RETURNS void LANGUAGE sql AS $$
	INSERT INTO row_counts AS known VALUES (of_what, of_node, 1) ON CONFLICT (kind, node) DO UPDATE SET rows = known.rows + 1
$$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION decisions_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF is_moving() THEN RETURN NULL; END IF;
	UPDATE row_counts SET rows = rows - 1 WHERE kind = 'decisions' AND node = OLD.node;
	UPDATE decision_log SET lost = lost + 1 WHERE id = 1 AND delivered_seq < OLD.seq;
	PERFORM check_snapshot(OLD.snapshot_id);
	DELETE FROM texts WHERE id > 'decision/' || OLD.id || '/' AND id < 'decision/' || OLD.id || '0';
	DELETE FROM series WHERE seq = OLD.seq;
	DELETE FROM results WHERE decision_id = OLD.id;
	DELETE FROM idempotency WHERE decision_id = OLD.id;
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION nodes_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'INSERT' THEN
		INSERT INTO row_counts VALUES ('decisions', NEW.name, 0) ON CONFLICT DO NOTHING;
		RETURN NULL;
	END IF;
	IF TG_OP = 'UPDATE' THEN
		IF OLD.last_snapshot_id IS DISTINCT FROM NEW.last_snapshot_id THEN PERFORM check_snapshot(OLD.last_snapshot_id); END IF;
		RETURN NULL;
	END IF;
	-- what is remembered of a node goes with it
	DELETE FROM facts WHERE node = OLD.name;
	DELETE FROM fact_parts WHERE node = OLD.name;
	DELETE FROM latest WHERE node = OLD.name;
	DELETE FROM row_counts WHERE kind = 'decisions' AND node = OLD.name AND rows = 0;
	PERFORM check_snapshot(OLD.last_snapshot_id);
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION removals_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO row_counts AS known SELECT kind, node, count(*) FROM told GROUP BY kind, node
	ON CONFLICT (kind, node) DO UPDATE SET rows = known.rows + excluded.rows;
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION removals_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE row_counts SET rows = rows - gone.count FROM (SELECT kind, node, count(*) AS count FROM gone GROUP BY kind, node) AS gone
	WHERE row_counts.kind = gone.kind AND row_counts.node = gone.node;
	DELETE FROM row_counts USING (SELECT DISTINCT kind, node FROM gone) AS gone
	WHERE row_counts.kind = gone.kind AND row_counts.node = gone.node AND rows = 0;
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION outcomes_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'INSERT' THEN
		PERFORM count_row('outcomes', NEW.node);
		PERFORM count_outcome(NEW.at_ms, NEW.node, NEW.kind, NEW.reason, 1);
		RETURN NULL;
	END IF;
	IF TG_OP = 'UPDATE' THEN
		-- an earlier sighting of the same outcome moves it
		IF (OLD.at_ms / 3600000, OLD.reason) IS DISTINCT FROM (NEW.at_ms / 3600000, NEW.reason) THEN
			PERFORM count_outcome(OLD.at_ms, OLD.node, OLD.kind, OLD.reason, -1);
			PERFORM count_outcome(NEW.at_ms, NEW.node, NEW.kind, NEW.reason, 1);
		END IF;
		RETURN NULL;
	END IF;
	UPDATE row_counts SET rows = rows - 1 WHERE kind = 'outcomes' AND node = OLD.node;
	DELETE FROM row_counts WHERE kind = 'outcomes' AND node = OLD.node AND rows = 0;
	PERFORM check_snapshot(OLD.snapshot_id);
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE OR REPLACE FUNCTION series_counted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	first record;
	before_count bigint := 1;
	before_ms bigint := 0;
BEGIN
	SELECT id, kind, node, verdict, reason, parts INTO first FROM decisions WHERE seq = NEW.seq;
	IF TG_OP = 'UPDATE' THEN
		before_count := OLD.count;
		before_ms := OLD.last_at_ms;
		IF OLD.last_snapshot_id IS DISTINCT FROM NEW.last_snapshot_id THEN PERFORM check_snapshot(OLD.last_snapshot_id); END IF;
	END IF;
	IF NEW.count <> before_count THEN
		UPDATE latest SET decided_at_ms = NEW.last_at_ms WHERE node = first.node AND kind = first.kind AND decision_id = first.id;
		PERFORM count_decisions(NEW.last_at_ms, first.node, first.verdict, first.reason, NEW.count - before_count);
	END IF;
	-- a text that a row still counts on is in use, which is noted each half hour
	IF NEW.last_at_ms / 1800000 > before_ms / 1800000 THEN
		UPDATE texts SET used_at_ms = NEW.last_at_ms WHERE used_at_ms < NEW.last_at_ms AND id = ANY (text_ids(first.parts));
	END IF;
	RETURN NULL;
END $$;
--> statement-breakpoint
-- The old names stay as columns with the same values, so that processes of an older version continue beside newer ones.
-- GENERATED fills in the column in existing rows and fires no trigger. DROP EXPRESSION then makes it a plain column, which
-- statements of an older version can write. row_counts.what stays generated, since only triggers insert into row_counts
ALTER TABLE row_counts ADD COLUMN what text COLLATE "C" GENERATED ALWAYS AS (kind) STORED;
--> statement-breakpoint
ALTER TABLE series ADD COLUMN times bigint GENERATED ALWAYS AS (count) STORED;
--> statement-breakpoint
ALTER TABLE series ALTER COLUMN times DROP EXPRESSION;
--> statement-breakpoint
ALTER TABLE removals
	ADD COLUMN why text COLLATE "C" GENERATED ALWAYS AS (reason) STORED,
	ADD COLUMN "end" text COLLATE "C" GENERATED ALWAYS AS (result) STORED,
	ADD COLUMN again_at_ms bigint GENERATED ALWAYS AS (pulled_again_at_ms) STORED;
--> statement-breakpoint
ALTER TABLE removals ALTER COLUMN why DROP EXPRESSION, ALTER COLUMN "end" DROP EXPRESSION, ALTER COLUMN again_at_ms DROP EXPRESSION;
--> statement-breakpoint
CREATE FUNCTION series_renamed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'INSERT' THEN
		NEW.count := coalesce(NEW.count, NEW.times);
	ELSIF NEW.times IS DISTINCT FROM OLD.times THEN
		NEW.count := NEW.times;
	END IF;
	NEW.times := NEW.count;
	RETURN NEW;
END $$;
--> statement-breakpoint
CREATE TRIGGER series_renamed BEFORE INSERT OR UPDATE ON series FOR EACH ROW EXECUTE FUNCTION series_renamed();
--> statement-breakpoint
CREATE FUNCTION removals_renamed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'INSERT' THEN
		NEW.reason := coalesce(NEW.reason, NEW.why);
		NEW.result := coalesce(NEW.result, NEW."end");
		NEW.pulled_again_at_ms := coalesce(NEW.pulled_again_at_ms, NEW.again_at_ms);
	ELSE
		IF NEW.why IS DISTINCT FROM OLD.why THEN NEW.reason := NEW.why; END IF;
		IF NEW."end" IS DISTINCT FROM OLD."end" THEN NEW.result := NEW."end"; END IF;
		IF NEW.again_at_ms IS DISTINCT FROM OLD.again_at_ms THEN NEW.pulled_again_at_ms := NEW.again_at_ms; END IF;
	END IF;
	NEW.why := NEW.reason;
	NEW."end" := NEW.result;
	NEW.again_at_ms := NEW.pulled_again_at_ms;
	RETURN NEW;
END $$;
--> statement-breakpoint
CREATE TRIGGER removals_renamed BEFORE INSERT OR UPDATE ON removals FOR EACH ROW EXECUTE FUNCTION removals_renamed();
