import { expect, test } from "vitest";
import { KINDS, type Kind } from "../../api/model/decision.ts";
import { NEWEST } from "../../api/profiles/index.ts";
import { plainPaint } from "../../api/text/style.ts";
import { answerText } from "../../api/text/tables/index.ts";
import { decisionRow, resultRow, snapshotRow, value } from "../contract/store-rows.ts";
import { answer, claim, claiming, DRIVER, result } from "../kit/claims.ts";
import { container } from "../kit/containers.ts";
import { podOf } from "../kit/pods.ts";
import { realRuntime } from "../kit/real-node.ts";
import { capturedSnapshot, type Subject, subject } from "./node-subject.ts";
import { postForm } from "./replay-forms.ts";

/** Clears a screen, does the same in its C1 form, reverses the writing direction, is invisible, and deletes. */
const BAD = "\u001b[2J\u009b2J\u202e\u200b\u007f";
const RAW = /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
const PICTURE = "␛[2J";

const readinessProbe = { httpGet: { path: "/", port: 80 } };
const POD = podOf([container("c", { cpu: "500" }, undefined, { readinessProbe })]);
const hostile = () => {
  const snapshot = capturedSnapshot();
  snapshot.node.status.nodeInfo["kernelVersion"] = BAD;
  return {
    ...snapshot,
    kubeletConfiguration: { ...snapshot.kubeletConfiguration, cpuManagerPolicyOptions: { [BAD]: BAD } },
    runtime: { ...realRuntime(), images: [{ id: BAD, repoTags: [BAD], size: "7" }] },
    devices: [{ resource: "example.com/gpu", id: BAD, health: BAD, numaNodes: [0] }],
    devicePlugins: [{ resource: "example.com/gpu" }],
    dra: {
      resourceClaims: [claim("gpu", [result(BAD)], ["p"])],
      resourceSlices: [],
      drivers: [{ name: DRIVER, answers: [answer("gpu", [BAD])] }],
    },
  };
};
const asks: { readonly [K in Kind]?: object } = {
  admission: { pod: POD },
  claims: { pod: claiming("p", ["gpu"]) },
  preemption: { pod: POD },
  resize: { pod: "default/guar-int", to: { cpu: "1" } },
  probes: { pod: POD },
};
/** A decision of every kind that needs only a single snapshot. */
async function decideAll({ decide }: Subject): Promise<ReadonlyMap<Kind, { id: string; decision: never }>> {
  const made = new Map<Kind, { id: string; decision: never }>();
  for (const kind of KINDS.filter((one) => one !== "probe-guard"))
    made.set(kind, await decide(kind, { snapshot: hostile(), ask: asks[kind] ?? null }));
  return made;
}

test("every page shows control characters in names and messages as pictures or codes", async () => {
  const api = subject();
  const { show, store, app } = api;
  const decided = await decideAll(api);
  const node = `old${BAD}`;
  const stored = snapshotRow({ node, body: JSON.stringify({ node: { metadata: { name: node } } }) });
  const body = JSON.stringify({ decision: { [BAD]: BAD }, reasons: [], needs: [BAD], next: null });
  const old = decisionRow({ node, pod: { namespace: BAD, name: BAD, uid: BAD }, body, snapshotId: stored.id });
  value(await store.record({ decision: old, snapshot: stored }));
  const step = { op: BAD, path: BAD, file: BAD, to: BAD, before: BAD, status: "failed", message: BAD };
  for (const id of [old.id, decided.get("cgroups")?.id ?? ""]) {
    const report = { ...resultRow({ atMs: Date.now() }), body: JSON.stringify({ dryRun: true, steps: [step] }) };
    value(await store.addResults(id, [report]));
  }
  const odd = encodeURIComponent(BAD);
  const paths = [
    "/",
    `/?q=${odd}`,
    "/nodes/n1",
    "/nodes/n1/decisions",
    `/nodes/n1/decisions?pod=${odd}`,
    `/nodes/n1?list=images`,
    `/nodes/${encodeURIComponent(node)}`,
    `/nodes/${encodeURIComponent(node)}/decisions`,
    `/nodes/${odd}`,
    `/decisions/${odd}`,
    `/decisions/${old.id}`,
    ...[...decided.values()].map(({ id }) => `/decisions/${id}`),
    `/what-if?decision=${decided.get("cgroups")?.id}&change=${encodeURIComponent(JSON.stringify({ maxPods: 3 }))}`,
    `/what-if?node=${odd}&machine=${odd}&change=${odd}`,
    `/lint?node=n1`,
    `/lint?node=${odd}`,
    "/replay",
    `/replay?node=${encodeURIComponent(node)}&since=${odd}`,
    `/nowhere/${odd}`,
  ];
  let pictured = 0;
  for (const path of paths) {
    const { html } = await show(path);
    // a textarea contains the text exactly as it was entered
    const shown = html.replaceAll(/<textarea[^>]*>[^<]*<\/textarea>/g, "");
    expect(RAW.exec(shown)?.index === undefined ? "" : around(shown), path).toBe("");
    if (html.includes(PICTURE)) pictured++;
  }
  expect(pictured).toBeGreaterThan(10);
  const replayed = await postForm(app, "/replay", { since: "", change: "maxPods: 5" });
  // hidden fields pass the counts of an interrupted replay to the next page; they are unchanged and not visible
  expect(around(replayed.html.replaceAll(/<input type="hidden"[^>]*>/g, ""))).toBe("");
  expect(replayed.html).toContain(PICTURE);
});
const around = (text: string): string => {
  const at = text.search(RAW);
  return at < 0 ? "" : JSON.stringify(text.slice(Math.max(0, at - 80), at + 20));
};

test("no table of the command line contains raw control characters from an answer", async () => {
  for (const [kind, { decision }] of await decideAll(subject())) {
    let drawn = 0;
    for (const changed of withBad(decision)) {
      let text: string;
      try {
        const decided = { decision: changed, reasons: [], needs: [BAD] } as never;
        const screen = { columns: 300, paint: plainPaint };
        const { policyVersion } = NEWEST;
        text = answerText({ kind, node: BAD, policyVersion, decided, explain: "off", observedAtMs: 0 }, screen);
      } catch {
        // the place accepts only a fixed set of words and refuses this text
        continue;
      }
      drawn++;
      expect(text, kind).not.toMatch(RAW);
    }
    expect(drawn, kind).toBeGreaterThan(0);
  }
});

/** Copies of the answer, in each of which another text or member name contains the bad characters. */
function* withBad(answer: unknown): Generator<unknown> {
  const places: (readonly (string | number)[])[] = [];
  const walk = (at: unknown, path: readonly (string | number)[]): void => {
    if (typeof at === "string") places.push(path);
    else if (typeof at === "object" && at !== null)
      for (const [name, member] of Object.entries(at)) walk(member, [...path, name]);
  };
  walk(answer, []);
  const stride = Math.ceil(places.length / MAX_PLACES);
  for (const place of places.filter((_, i) => i % stride === 0)) {
    const copy = structuredClone(answer) as Record<string, unknown>;
    let at: Record<string, unknown> = copy;
    for (const name of place.slice(0, -1)) at = at[name] as Record<string, unknown>;
    const last = place.at(-1) as string;
    at[last] = `${String(at[last])}${BAD}`;
    yield copy;
  }
}
const MAX_PLACES = 150;
