import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { ApiClient } from "../../actuator/client/client.ts";
import { Outbox, type Pending } from "../../actuator/client/outbox.ts";
import { FactsStore } from "../../actuator/core/facts-file.ts";
import { serving } from "../api/serving.ts";
import { captured } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";

vi.setConfig({ testTimeout: 60_000 });

const recorded = captured("snapshot.json");
const at = (day: number): string => `2026-01-0${day}T00:00:00.000Z`;
/** Each day has another decision, since an identical one would only raise the count of the last record. */
const snapshotOf = (day: number) => ({
  ...recorded,
  observedAt: at(day),
  kubeletConfiguration: { ...recorded.kubeletConfiguration, podPidsLimit: 1000 + day },
});
/** A decision of a day, and its results. */
const pending = (day: number): Pending => ({
  kind: "cgroups",
  snapshot: snapshotOf(day),
  report: { at: at(day), dryRun: false, complete: true, results: [{ status: "applied" }] },
});

/** A request for a decision, or a report of results. */
interface Posted {
  readonly snapshot?: { readonly observedAt: string };
  readonly decisionId?: string;
  readonly at?: string;
}
interface ReceivedTurn {
  readonly decisions: readonly { readonly id: string }[];
  readonly results: readonly object[];
}
/** The API itself, and a daemon's directory; `life` is one run of a daemon. */
async function world() {
  const { api } = await serving({ threads: 0 });
  const dir = scratchFolder();
  const file = join(dir, "outbox.jsonl");
  const sent: string[] = [];
  /** Whether a request reaches the API; the answer to a request that does may be lost. */
  let line: (nth: number) => "open" | "cut" | "answer lost" = () => "open";
  const life = () => {
    const messages: string[] = [];
    const carry = async (request: Request): Promise<Response> => {
      const { snapshot, decisionId, at: day } = (await request.clone().json()) as Posted;
      const what = decisionId === undefined ? `${snapshot?.observedAt}` : `results ${day}`;
      const state = line(sent.length);
      if (state !== "cut") sent.push(what);
      const response = state === "cut" ? null : await fetch(request);
      if (response === null || state === "answer lost") throw new TypeError("the line is cut");
      return response;
    };
    const access = { url: api.url, token: undefined, timeoutMs: 20_000, fetch: carry };
    const outbox = Outbox.open(file);
    const memory = new FactsStore(dir, (message) => messages.push(message));
    const client = new ApiClient(access, outbox, memory, ({ message }) => messages.push(message));
    const pass = (day: number) => client.decide("cgroups", snapshotOf(day));
    return { outbox, messages, pass };
  };
  const known = async () => {
    const get = async (path: string) => (await (await fetch(`${api.url}${path}`)).json()) as ReceivedTurn;
    const { decisions } = await get(`/v1/nodes/${recorded.node.metadata.name}/decisions?limit=200`);
    const reports = await Promise.all(
      decisions.map(async ({ id }) => (await get(`/v1/decisions/${id}`)).results.length),
    );
    return { decisions: decisions.length, reports: reports.toSorted() };
  };
  return {
    file,
    sent,
    life,
    known,
    cut: (state: typeof line) => {
      line = state;
    },
  };
}

test("entries are sent oldest first, each with its results, before the current request", async () => {
  const { sent, life, known } = await world();
  const { outbox, messages, pass } = life();
  for (const day of [3, 1, 2]) outbox.add(pending(day));
  expect((await pass(4)).ok).toBe(true);
  const both = (day: number) => [at(day), `results ${at(day)}`];
  expect(sent).toEqual([...both(3), ...both(1), ...both(2), at(4)]);
  expect([outbox.size, messages]).toEqual([0, []]);
  expect(await known()).toEqual({ decisions: 4, reports: [0, 1, 1, 1] });
});

test("an entry that the API refuses for good is reported and dropped, and does not block the others", async () => {
  const { sent, life, known } = await world();
  const first = life();
  first.outbox.add({ ...pending(1), snapshot: { observedAt: "yesterday" } });
  first.outbox.add(pending(2));
  await first.pass(3);
  expect(sent).toEqual(["yesterday", at(2), `results ${at(2)}`, at(3)]);
  expect(first.messages).toEqual([expect.stringMatching(/^a decision made earlier is not taken: .+ answered 4\d\d /)]);
  const second = life();
  expect(second.outbox.size).toBe(0);
  await second.pass(4);
  expect([second.messages, sent.filter((one) => one === "yesterday").length]).toEqual([[], 1]);
  expect(await known()).toEqual({ decisions: 3, reports: [0, 0, 1] });
});

test("results that the API refuses for good are reported, and their decision is stored without them", async () => {
  const { life, known } = await world();
  const { outbox, messages, pass } = life();
  outbox.add({ ...pending(1), report: { ...pending(1).report, at: "yesterday" } as Pending["report"] });
  await pass(2);
  expect(messages).toEqual([
    expect.stringMatching(/^a decision made earlier is not taken: .*\/v1\/results answered 4\d\d /),
  ]);
  expect(outbox.size).toBe(0);
  expect(await known()).toEqual({ decisions: 2, reports: [0, 0] });
});

test("entries sent before a crash are sent again, and stored once", async () => {
  const { file, sent, life, known } = await world();
  const first = life();
  for (const day of [1, 2, 3]) first.outbox.add(pending(day));
  copyFileSync(file, `${file}.before`);
  await first.pass(4);
  const before = await known();
  copyFileSync(`${file}.before`, file);
  const second = life();
  expect(second.outbox.size).toBe(3);
  await second.pass(4);
  expect(sent.filter((one) => one === at(2)).length).toBe(2);
  expect([second.outbox.size, second.messages]).toEqual([0, []]);
  expect([before, await known()]).toEqual(Array(2).fill({ decisions: 4, reports: [0, 1, 1, 1] }));
});

test.each([
  ["a decision", 2],
  ["its results", 3],
])("after a lost answer to %s it is sent again, the rest follows in order, and all is stored once", async (_, nth) => {
  const { sent, life, known, cut } = await world();
  const { outbox, pass } = life();
  for (const day of [1, 2, 3]) outbox.add(pending(day));
  cut((n) => (n < nth ? "open" : n === nth ? "answer lost" : "cut"));
  const answer = await pass(4);
  expect(answer.ok && answer.value.decidedBy).toBe("here");
  expect(outbox.size).toBe(2);
  cut(() => "open");
  await pass(5);
  expect(outbox.size).toBe(0);
  const both = (day: number) => [at(day), `results ${at(day)}`];
  expect(sent).toEqual([...both(1), ...both(2).slice(0, nth - 1), ...both(2), ...both(3), at(5)]);
  expect(await known()).toEqual({ decisions: 4, reports: [0, 1, 1, 1] });
});
