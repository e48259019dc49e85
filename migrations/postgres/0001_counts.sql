-- default partitions: for rows of days without a partition, and for rows that were kept when their partition was dropped
CREATE TABLE decisions_rest PARTITION OF decisions DEFAULT;
--> statement-breakpoint
CREATE TABLE snapshots_rest PARTITION OF snapshots DEFAULT;
--> statement-breakpoint
-- large values are already compressed
ALTER TABLE decisions ALTER body SET STORAGE EXTERNAL, ALTER ask SET STORAGE EXTERNAL;
--> statement-breakpoint
ALTER TABLE snapshots ALTER body SET STORAGE EXTERNAL;
--> statement-breakpoint
ALTER TABLE texts ALTER body SET STORAGE EXTERNAL;
--> statement-breakpoint
ALTER TABLE health ALTER filler SET STORAGE EXTERNAL;
--> statement-breakpoint
-- the ids of the texts in the parts of a row
CREATE FUNCTION text_ids(parts text) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	SELECT coalesce(array_agg(place ->> 1), '{}') FROM json_array_elements(CAST(coalesce(parts, '[]') AS json)) AS place
$$;
--> statement-breakpoint
-- a row that is moved to another partition is neither inserted nor deleted for the counts
CREATE FUNCTION is_moving() RETURNS boolean LANGUAGE sql STABLE AS $$
	SELECT coalesce(current_setting('nodewise.moves', true), '') = 'on'
$$;
--> statement-breakpoint
CREATE FUNCTION count_decisions(at_ms bigint, of_node text, of_verdict text, of_reason text, times bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	hour bigint := at_ms / 3600000 * 3600000;
	is_refused boolean := of_verdict IN ('refused', 'kubelet-refuses');
BEGIN
	INSERT INTO hours AS known VALUES (hour, of_node, times, times * is_refused::int,
		times * (of_verdict IN ('under-pressure', 'reclaims', 'evicts'))::int, times * (of_verdict = 'evicts')::int, times * (of_verdict = 'removes')::int)
	ON CONFLICT (hour_ms, node) DO UPDATE SET
		decisions = known.decisions + excluded.decisions, refused = known.refused + excluded.refused,
		pressured = known.pressured + excluded.pressured, evicted = known.evicted + excluded.evicted, removed = known.removed + excluded.removed;
	IF is_refused THEN
		INSERT INTO refusals AS known VALUES (hour, of_node, coalesce(of_reason, of_verdict), times)
		ON CONFLICT (hour_ms, node, reason) DO UPDATE SET count = known.count + excluded.count;
	END IF;
END $$;
--> statement-breakpoint
CREATE FUNCTION check_snapshot(of_id text) RETURNS void LANGUAGE sql AS $$
	INSERT INTO unchecked_snapshots SELECT seq FROM snapshots WHERE id = of_id ON CONFLICT DO NOTHING
$$;
--> statement-breakpoint
CREATE FUNCTION count_row(of_what text, of_node text) RETURNS void LANGUAGE sql AS $$
	INSERT INTO row_counts AS known VALUES (of_what, of_node, 1) ON CONFLICT (what, node) DO UPDATE SET rows = known.rows + 1
$$;
--> statement-breakpoint
CREATE FUNCTION decisions_stored() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF is_moving() THEN RETURN NULL; END IF;
	INSERT INTO latest (node, kind, decision_id, verdict, decided_at_ms, policy_version, reason)
	VALUES (NEW.node, NEW.kind, NEW.id, NEW.verdict, NEW.decided_at_ms, NEW.policy_version, NEW.reason)
	ON CONFLICT (node, kind) DO UPDATE SET
		decision_id = excluded.decision_id, verdict = excluded.verdict, decided_at_ms = excluded.decided_at_ms,
		policy_version = excluded.policy_version, reason = excluded.reason, summary = NULL
	WHERE excluded.decided_at_ms >= latest.decided_at_ms;
	PERFORM count_decisions(NEW.decided_at_ms, NEW.node, NEW.verdict, NEW.reason, 1);
	PERFORM count_row('decisions', NEW.node);
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER decisions_stored AFTER INSERT ON decisions FOR EACH ROW EXECUTE FUNCTION decisions_stored();
--> statement-breakpoint
CREATE FUNCTION decisions_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF is_moving() THEN RETURN NULL; END IF;
	UPDATE row_counts SET rows = rows - 1 WHERE what = 'decisions' AND node = OLD.node;
	PERFORM check_snapshot(OLD.snapshot_id);
	DELETE FROM texts WHERE id > 'decision/' || OLD.id || '/' AND id < 'decision/' || OLD.id || '0';
	DELETE FROM series WHERE seq = OLD.seq;
	DELETE FROM results WHERE decision_id = OLD.id;
	DELETE FROM idempotency WHERE decision_id = OLD.id;
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER decisions_gone AFTER DELETE ON decisions FOR EACH ROW EXECUTE FUNCTION decisions_gone();
--> statement-breakpoint
-- each repetition counts in its hour, as a separate row did before. The time of the node's newest decision is that of the last repetition
CREATE FUNCTION series_counted() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	first record;
	before_times bigint := 1;
	before_ms bigint := 0;
BEGIN
	SELECT id, kind, node, verdict, reason, parts INTO first FROM decisions WHERE seq = NEW.seq;
	IF TG_OP = 'UPDATE' THEN
		before_times := OLD.times;
		before_ms := OLD.last_at_ms;
		IF OLD.last_snapshot_id IS DISTINCT FROM NEW.last_snapshot_id THEN PERFORM check_snapshot(OLD.last_snapshot_id); END IF;
	END IF;
	IF NEW.times <> before_times THEN
		UPDATE latest SET decided_at_ms = NEW.last_at_ms WHERE node = first.node AND kind = first.kind AND decision_id = first.id;
		PERFORM count_decisions(NEW.last_at_ms, first.node, first.verdict, first.reason, NEW.times - before_times);
	END IF;
	-- a text that a row still counts on is in use, which is noted each half hour
	IF NEW.last_at_ms / 1800000 > before_ms / 1800000 THEN
		UPDATE texts SET used_at_ms = NEW.last_at_ms WHERE used_at_ms < NEW.last_at_ms AND id = ANY (text_ids(first.parts));
	END IF;
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER series_counted AFTER INSERT OR UPDATE ON series FOR EACH ROW EXECUTE FUNCTION series_counted();
--> statement-breakpoint
CREATE FUNCTION series_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM check_snapshot(OLD.last_snapshot_id);
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER series_gone AFTER DELETE ON series FOR EACH ROW EXECUTE FUNCTION series_gone();
--> statement-breakpoint
CREATE FUNCTION snapshots_stored() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NOT is_moving() THEN INSERT INTO unchecked_snapshots VALUES (NEW.seq) ON CONFLICT DO NOTHING; END IF;
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER snapshots_stored AFTER INSERT ON snapshots FOR EACH ROW EXECUTE FUNCTION snapshots_stored();
--> statement-breakpoint
CREATE FUNCTION snapshots_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF NOT is_moving() THEN DELETE FROM texts WHERE id > 'snapshot/' || OLD.id || '/' AND id < 'snapshot/' || OLD.id || '0'; END IF;
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER snapshots_gone AFTER DELETE ON snapshots FOR EACH ROW EXECUTE FUNCTION snapshots_gone();
--> statement-breakpoint
CREATE FUNCTION nodes_changed() RETURNS trigger LANGUAGE plpgsql AS $$
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
	DELETE FROM row_counts WHERE what = 'decisions' AND node = OLD.name AND rows = 0;
	PERFORM check_snapshot(OLD.last_snapshot_id);
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER nodes_changed AFTER INSERT OR UPDATE OR DELETE ON nodes FOR EACH ROW EXECUTE FUNCTION nodes_changed();
--> statement-breakpoint
-- a pass may report thousands of removals, which are counted together
CREATE FUNCTION removals_told() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO row_counts AS known SELECT kind, node, count(*) FROM told GROUP BY kind, node
	ON CONFLICT (what, node) DO UPDATE SET rows = known.rows + excluded.rows;
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER removals_told AFTER INSERT ON removals REFERENCING NEW TABLE AS told FOR EACH STATEMENT EXECUTE FUNCTION removals_told();
--> statement-breakpoint
CREATE FUNCTION removals_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE row_counts SET rows = rows - gone.count FROM (SELECT kind, node, count(*) AS count FROM gone GROUP BY kind, node) AS gone
	WHERE what = gone.kind AND row_counts.node = gone.node;
	DELETE FROM row_counts USING (SELECT DISTINCT kind, node FROM gone) AS gone
	WHERE what = gone.kind AND row_counts.node = gone.node AND rows = 0;
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER removals_gone AFTER DELETE ON removals REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION removals_gone();
--> statement-breakpoint
CREATE FUNCTION count_outcome(at_ms bigint, of_node text, of_kind text, of_reason text, times bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	hour bigint := at_ms / 3600000 * 3600000;
BEGIN
	IF of_reason IS NULL THEN RETURN; END IF;
	INSERT INTO outcome_hours AS known VALUES (hour, of_node, of_kind, of_reason, times)
	ON CONFLICT (hour_ms, node, kind, reason) DO UPDATE SET count = known.count + excluded.count;
	DELETE FROM outcome_hours WHERE hour_ms = hour AND node = of_node AND kind = of_kind AND reason = of_reason AND count = 0;
END $$;
--> statement-breakpoint
CREATE FUNCTION outcomes_changed() RETURNS trigger LANGUAGE plpgsql AS $$
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
	UPDATE row_counts SET rows = rows - 1 WHERE what = 'outcomes' AND node = OLD.node;
	DELETE FROM row_counts WHERE what = 'outcomes' AND node = OLD.node AND rows = 0;
	PERFORM check_snapshot(OLD.snapshot_id);
	RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER outcomes_changed AFTER INSERT OR UPDATE OR DELETE ON outcomes FOR EACH ROW EXECUTE FUNCTION outcomes_changed();
