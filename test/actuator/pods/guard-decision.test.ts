import { join } from "node:path";
import { expect, test } from "vitest";
import { ApiClient, redactingClient } from "../../../actuator/client/client.ts";
import { localClient } from "../../../actuator/client/local-client.ts";
import { Outbox } from "../../../actuator/client/outbox.ts";
import { FactsStore } from "../../../actuator/core/facts-file.ts";
import type { DecisionClient, Problem } from "../../../actuator/core/interfaces.ts";
import { reportGuardDecision } from "../../../actuator/pods/probing/open-probes.ts";
import type { Guarded } from "../../../actuator/probes/engine/liveness-storm-guard.ts";
import { decideProbeGuard } from "../../../api/decide/kinds/probe-guard.ts";
import type { ProbeGuardAsk } from "../../../api/model/probe-guard.ts";
import { scratch } from "./scratch.ts";

const ask: ProbeGuardAsk = {
  guard: { windowSeconds: 30, least: { groups: 2 }, holdSeconds: 120 },
  groups: 4,
  known: [],
  failed: ["a", "b"].map((name) => ({ containerId: `id-${name}`, container: `shop/${name}/app`, group: name })),
  recovered: [],
  gone: [],
};
function guarded(): Guarded {
  const decided = decideProbeGuard({ snapshot: {}, facts: {}, ask, explain: "off" });
  if (!decided.ok) throw new Error(decided.error.message);
  return { ask, decision: decided.value.decision, killedBefore: [] };
}
/** Records the decisions with their deciders, and the reported problems. */
function listening(client: DecisionClient) {
  const [decisions, problems]: [unknown[], Problem[]] = [[], []];
  const counters = { decided: () => {}, outbox: () => {} };
  const reported = redactingClient(client, counters, (kind, { decidedBy, verdict, reasons }) => {
    decisions.push([kind, decidedBy, verdict, reasons.map(({ at }) => at)]);
  });
  const listeners = { nodeName: "n1", client: reported, onProblem: (problem: Problem) => void problems.push(problem) };
  return { decisions, problems, listeners };
}
const memoryIn = (dir: string): FactsStore => new FactsStore(dir, (message) => expect.fail(message));
const HERE = ["probe-guard", "here", "keeps", ["node", "shop/a/app", "shop/b/app"]];

test("without an API the probe guard's decision is logged and counted with its reasons", async () => {
  const { decisions, problems, listeners } = listening(localClient(memoryIn(scratch())));
  await reportGuardDecision(guarded(), listeners);
  expect(decisions).toEqual([HERE]);
  expect(problems).toEqual([
    {
      from: "probes",
      message: expect.stringMatching(/^liveness probes of 2 .*; held now: shop\/a\/app, shop\/b\/app$/),
    },
  ]);
});

test("while the API is unreachable the probe guard's decision is kept in full, with node and time", async () => {
  const dir = scratch();
  const outbox = Outbox.open(join(dir, "outbox.jsonl"));
  const access = { url: "http://127.0.0.1:1", token: undefined, timeoutMs: 5000, fetch };
  const { decisions, listeners } = listening(new ApiClient(access, outbox, memoryIn(dir), () => {}));
  await reportGuardDecision(guarded(), listeners);
  expect(decisions).toEqual([HERE]);
  expect(outbox.size).toBe(1);
  const pending = outbox.first();
  expect(pending).toMatchObject({ kind: "probe-guard", ask, report: null });
  expect(pending?.snapshot).toEqual({ observedAt: expect.any(String), node: { metadata: { name: "n1" } } });
});
