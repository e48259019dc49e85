import { Hono } from "hono";
import { Counter, Gauge, type Registry } from "prom-client";
import { processRegistry } from "../observe/node-metrics.ts";
import type { Collector, CollectorCounts } from "./collector.ts";

const FIGURES: Readonly<Record<keyof CollectorCounts, readonly [name: string, help: string]>> = {
  nodes: ["nodewise_collector_nodes", "Nodes of the cluster."],
  faultyNodes: ["nodewise_collector_faulty_nodes", "Nodes that cannot be read completely, or that the API refuses."],
  snapshots: ["nodewise_collector_snapshots_total", "Snapshots that the API accepted."],
  decisions: ["nodewise_collector_decisions_total", "Decisions that the API made about these snapshots."],
  outcomes: ["nodewise_collector_outcomes_total", "Outcomes (what kubelets really did) that the API accepted."],
  waitingOutcomes: ["nodewise_collector_waiting_outcomes", "Outcomes that wait for the API."],
  lostOutcomes: [
    "nodewise_collector_lost_outcomes_total",
    "Outcomes that were dropped: too many waited, or the API refused them.",
  ],
};

interface Figure {
  readonly name: string;
  readonly help: string;
  readonly registers: Registry[];
}
const counted = (figure: Figure, now: () => number): Counter =>
  new Counter({
    ...figure,
    collect() {
      this.reset();
      this.inc(now());
    },
  });
const measured = (figure: Figure, now: () => number): Gauge =>
  new Gauge({
    ...figure,
    collect() {
      this.set(now());
    },
  });

/** `/healthz`, `/readyz` (everything is followed, and the API accepts what it is sent) and `/metrics` of a collector. */
export function statusApp(collector: Pick<Collector, "counts" | "isReady">): Hono {
  const registry = processRegistry();
  const registers = [registry];
  for (const [figure, [name, help]] of Object.entries(FIGURES)) {
    const now = () => collector.counts[figure as keyof CollectorCounts];
    if (name.endsWith("_total")) counted({ name, help, registers }, now);
    else measured({ name, help, registers }, now);
  }
  const app = new Hono();
  app.get("/healthz", (c) => c.text("ok\n"));
  app.get("/readyz", (c) => (collector.isReady ? c.text("ok\n") : c.text("not ready\n", 503)));
  app.get("/metrics", async (c) => c.text(await registry.metrics(), 200, { "content-type": registry.contentType }));
  return app;
}
