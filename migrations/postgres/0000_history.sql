-- as drizzle-kit made it, but for PARTITION BY, which it cannot write
CREATE TABLE "decisions" (
	"seq" bigserial NOT NULL,
	"id" text COLLATE "C" NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"node" text COLLATE "C" NOT NULL,
	"snapshot_id" text COLLATE "C",
	"policy_version" text COLLATE "C" NOT NULL,
	"verdict" text COLLATE "C" NOT NULL,
	"explain" text COLLATE "C" NOT NULL,
	"decided_at_ms" bigint NOT NULL,
	"pod_namespace" text COLLATE "C",
	"pod_name" text COLLATE "C",
	"pod_uid" text COLLATE "C",
	"bytes" bigint NOT NULL,
	"encoding" text COLLATE "C" NOT NULL,
	"ask" "bytea",
	"body" "bytea" NOT NULL,
	"parts" text COLLATE "C",
	"reason" text COLLATE "C",
	"kubelet" text COLLATE "C" GENERATED ALWAYS AS (substr(policy_version, 9, 4)) STORED
) PARTITION BY RANGE ("decided_at_ms");
--> statement-breakpoint
CREATE TABLE "fact_parts" (
	"node" text COLLATE "C" NOT NULL,
	"key" text COLLATE "C" NOT NULL,
	"part" bigint NOT NULL,
	"value" text COLLATE "C" NOT NULL,
	"updated_at_ms" bigint NOT NULL,
	CONSTRAINT "fact_parts_node_key_part_pk" PRIMARY KEY("node","key","part")
);
--> statement-breakpoint
CREATE TABLE "facts" (
	"node" text COLLATE "C" NOT NULL,
	"key" text COLLATE "C" NOT NULL,
	"value" text COLLATE "C" NOT NULL,
	"updated_at_ms" bigint NOT NULL,
	CONSTRAINT "facts_node_key_pk" PRIMARY KEY("node","key")
);
--> statement-breakpoint
CREATE TABLE "health" (
	"id" bigint PRIMARY KEY NOT NULL,
	"checked_at_ms" bigint NOT NULL,
	"filler" "bytea"
);
--> statement-breakpoint
CREATE TABLE "hours" (
	"hour_ms" bigint NOT NULL,
	"node" text COLLATE "C" NOT NULL,
	"decisions" bigint NOT NULL,
	"refused" bigint NOT NULL,
	"pressured" bigint NOT NULL,
	"evicted" bigint NOT NULL,
	"removed" bigint NOT NULL,
	CONSTRAINT "hours_hour_ms_node_pk" PRIMARY KEY("hour_ms","node")
);
--> statement-breakpoint
CREATE TABLE "idempotency" (
	"key" text COLLATE "C" NOT NULL,
	"scope" text COLLATE "C" NOT NULL,
	"request_hash" text COLLATE "C" NOT NULL,
	"decision_id" text COLLATE "C" NOT NULL,
	"at_ms" bigint NOT NULL,
	CONSTRAINT "idempotency_key_scope_pk" PRIMARY KEY("key","scope")
);
--> statement-breakpoint
CREATE TABLE "latest" (
	"node" text COLLATE "C" NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"decision_id" text COLLATE "C" NOT NULL,
	"verdict" text COLLATE "C" NOT NULL,
	"decided_at_ms" bigint NOT NULL,
	"policy_version" text COLLATE "C" DEFAULT '' NOT NULL,
	"reason" text COLLATE "C",
	"summary" text COLLATE "C",
	CONSTRAINT "latest_node_kind_pk" PRIMARY KEY("node","kind")
);
--> statement-breakpoint
CREATE TABLE "nodes" (
	"name" text COLLATE "C" PRIMARY KEY NOT NULL,
	"first_seen_ms" bigint NOT NULL,
	"last_seen_ms" bigint NOT NULL,
	"boot_id" text COLLATE "C",
	"last_snapshot_id" text COLLATE "C",
	"last_sequence" bigint,
	"labels" text COLLATE "C",
	"kubelet_version" text COLLATE "C",
	"conditions" text COLLATE "C",
	"deleted_ms" bigint
);
--> statement-breakpoint
CREATE TABLE "outcome_hours" (
	"hour_ms" bigint NOT NULL,
	"node" text COLLATE "C" NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"reason" text COLLATE "C" NOT NULL,
	"count" bigint NOT NULL,
	CONSTRAINT "outcome_hours_hour_ms_node_kind_reason_pk" PRIMARY KEY("hour_ms","node","kind","reason")
);
--> statement-breakpoint
CREATE TABLE "outcomes" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"id" text COLLATE "C" NOT NULL,
	"node" text COLLATE "C" NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"verdict" text COLLATE "C" NOT NULL,
	"at_ms" bigint NOT NULL,
	"recorded_at_ms" bigint NOT NULL,
	"snapshot_id" text COLLATE "C",
	"pod_namespace" text COLLATE "C",
	"pod_name" text COLLATE "C",
	"pod_uid" text COLLATE "C",
	"bytes" bigint NOT NULL,
	"encoding" text COLLATE "C" NOT NULL,
	"body" "bytea" NOT NULL,
	"reason" text COLLATE "C"
);
--> statement-breakpoint
CREATE TABLE "refusals" (
	"hour_ms" bigint NOT NULL,
	"node" text COLLATE "C" NOT NULL,
	"reason" text COLLATE "C" NOT NULL,
	"count" bigint NOT NULL,
	CONSTRAINT "refusals_hour_ms_node_reason_pk" PRIMARY KEY("hour_ms","node","reason")
);
--> statement-breakpoint
CREATE TABLE "removals" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"node" text COLLATE "C" NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"target" text COLLATE "C" NOT NULL,
	"object_id" text COLLATE "C" NOT NULL,
	"runtime_handler" text COLLATE "C" NOT NULL,
	"names" text COLLATE "C" NOT NULL,
	"size_bytes" bigint,
	"why" text COLLATE "C" NOT NULL,
	"operation" text COLLATE "C" NOT NULL,
	"end" text COLLATE "C" NOT NULL,
	"message" text COLLATE "C",
	"at_ms" bigint NOT NULL,
	"decision_id" text COLLATE "C" NOT NULL,
	"again_at_ms" bigint,
	"pod_namespace" text COLLATE "C",
	"pod_name" text COLLATE "C",
	"pod_uid" text COLLATE "C",
	"container_name" text COLLATE "C"
);
--> statement-breakpoint
CREATE TABLE "results" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"decision_id" text COLLATE "C" NOT NULL,
	"node" text COLLATE "C" NOT NULL,
	"seq" bigint NOT NULL,
	"ok_count" bigint NOT NULL,
	"failed_count" bigint NOT NULL,
	"at_ms" bigint NOT NULL,
	"bytes" bigint NOT NULL,
	"encoding" text COLLATE "C" NOT NULL,
	"body" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "row_counts" (
	"what" text COLLATE "C" NOT NULL,
	"node" text COLLATE "C" NOT NULL,
	"rows" bigint NOT NULL,
	CONSTRAINT "row_counts_what_node_pk" PRIMARY KEY("what","node")
);
--> statement-breakpoint
CREATE TABLE "series" (
	"seq" bigint PRIMARY KEY NOT NULL,
	"node" text COLLATE "C" NOT NULL,
	"times" bigint NOT NULL,
	"last_at_ms" bigint NOT NULL,
	"last_snapshot_id" text COLLATE "C",
	"last_id" text COLLATE "C"
);
--> statement-breakpoint
CREATE TABLE "snapshots" (
	"seq" bigserial NOT NULL,
	"id" text COLLATE "C" NOT NULL,
	"node" text COLLATE "C" NOT NULL,
	"observed_at_ms" bigint,
	"sequence" bigint,
	"boot_id" text COLLATE "C",
	"stored_at_ms" bigint NOT NULL,
	"bytes" bigint NOT NULL,
	"encoding" text COLLATE "C" NOT NULL,
	"body" "bytea" NOT NULL,
	"parts" text COLLATE "C"
) PARTITION BY RANGE ("stored_at_ms");
--> statement-breakpoint
CREATE TABLE "sweeps" (
	"id" bigint PRIMARY KEY NOT NULL,
	"at_ms" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "texts" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"used_at_ms" bigint NOT NULL,
	"bytes" bigint NOT NULL,
	"encoding" text COLLATE "C" NOT NULL,
	"body" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tokens" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"hash" text COLLATE "C" NOT NULL,
	"scopes" text COLLATE "C" NOT NULL,
	"node" text COLLATE "C",
	"created_at_ms" bigint NOT NULL,
	"revoked_at_ms" bigint
);
--> statement-breakpoint
CREATE TABLE "unchecked_snapshots" (
	"seq" bigint PRIMARY KEY NOT NULL
);
--> statement-breakpoint
CREATE INDEX "decisions_id" ON "decisions" USING btree ("id");--> statement-breakpoint
CREATE INDEX "decisions_by_time" ON "decisions" USING btree ("decided_at_ms","seq","kind","verdict");--> statement-breakpoint
CREATE INDEX "decisions_by_node" ON "decisions" USING btree ("node","decided_at_ms","seq","kind","verdict");--> statement-breakpoint
CREATE INDEX "decisions_by_reason" ON "decisions" USING btree ("reason","decided_at_ms","seq","node","kind","verdict") WHERE reason IS NOT NULL;--> statement-breakpoint
CREATE INDEX "decisions_by_verdict" ON "decisions" USING btree ("verdict","decided_at_ms","seq","node","kind") WHERE verdict NOT IN ('decided', 'calm', 'keeps');--> statement-breakpoint
CREATE INDEX "decisions_by_kubelet" ON "decisions" USING btree ("kubelet","decided_at_ms","seq");--> statement-breakpoint
CREATE INDEX "decisions_by_snapshot" ON "decisions" USING btree ("snapshot_id") WHERE snapshot_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "decisions_by_pod_uid" ON "decisions" USING btree ("pod_uid") WHERE pod_uid IS NOT NULL;--> statement-breakpoint
CREATE INDEX "decisions_by_pod_name" ON "decisions" USING btree ("pod_name","pod_namespace") WHERE pod_name IS NOT NULL;--> statement-breakpoint
CREATE INDEX "decisions_by_seq" ON "decisions" USING btree ("seq");--> statement-breakpoint
CREATE INDEX "idempotency_by_decision" ON "idempotency" USING btree ("decision_id");--> statement-breakpoint
CREATE UNIQUE INDEX "outcomes_id" ON "outcomes" USING btree ("id");--> statement-breakpoint
CREATE INDEX "outcomes_by_time" ON "outcomes" USING btree ("at_ms","seq","kind","verdict");--> statement-breakpoint
CREATE INDEX "outcomes_by_node" ON "outcomes" USING btree ("node","at_ms","seq","kind","verdict");--> statement-breakpoint
CREATE INDEX "outcomes_by_reason" ON "outcomes" USING btree ("reason","at_ms","seq","node","kind","verdict") WHERE reason IS NOT NULL;--> statement-breakpoint
CREATE INDEX "outcomes_by_namespace" ON "outcomes" USING btree ("pod_namespace","at_ms","seq","kind","verdict") WHERE pod_namespace IS NOT NULL;--> statement-breakpoint
CREATE INDEX "outcomes_by_pod_uid" ON "outcomes" USING btree ("pod_uid") WHERE pod_uid IS NOT NULL;--> statement-breakpoint
CREATE INDEX "outcomes_by_pod_name" ON "outcomes" USING btree ("pod_name","pod_namespace") WHERE pod_name IS NOT NULL;--> statement-breakpoint
CREATE INDEX "outcomes_by_snapshot" ON "outcomes" USING btree ("snapshot_id") WHERE snapshot_id IS NOT NULL;--> statement-breakpoint
CREATE UNIQUE INDEX "removals_key" ON "removals" USING btree ("node","object_id","target","runtime_handler","at_ms");--> statement-breakpoint
CREATE INDEX "removals_by_node" ON "removals" USING btree ("node","at_ms","seq","kind","target","end");--> statement-breakpoint
CREATE INDEX "removals_by_time" ON "removals" USING btree ("at_ms","seq");--> statement-breakpoint
CREATE INDEX "results_by_decision" ON "results" USING btree ("decision_id","seq","id");--> statement-breakpoint
CREATE INDEX "row_counts_none" ON "row_counts" USING btree ("node") WHERE what = 'decisions' AND rows = 0;--> statement-breakpoint
CREATE INDEX "series_by_time" ON "series" USING btree ("last_at_ms");--> statement-breakpoint
CREATE INDEX "series_by_node" ON "series" USING btree ("node");--> statement-breakpoint
CREATE INDEX "series_by_snapshot" ON "series" USING btree ("last_snapshot_id") WHERE last_snapshot_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX "snapshots_id" ON "snapshots" USING btree ("id");--> statement-breakpoint
CREATE INDEX "snapshots_by_time" ON "snapshots" USING btree ("stored_at_ms","seq","id");--> statement-breakpoint
CREATE INDEX "snapshots_by_node" ON "snapshots" USING btree ("node","observed_at_ms","seq","id");--> statement-breakpoint
CREATE INDEX "snapshots_by_seq" ON "snapshots" USING btree ("seq");--> statement-breakpoint
CREATE INDEX "texts_by_use" ON "texts" USING btree ("used_at_ms","id");--> statement-breakpoint
CREATE UNIQUE INDEX "tokens_hash" ON "tokens" USING btree ("hash");