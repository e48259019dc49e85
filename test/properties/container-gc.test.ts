import { expect, test } from "vitest";
import type { ContainerKept } from "../../api/model/container-gc.ts";
import {
  type Answer,
  answer,
  EVICTED,
  gcContainer,
  gcNode,
  READY,
  sandbox,
  UNDER_PRESSURE,
} from "../decide/container-gc/container-gc-kit.ts";
import { pod } from "../kit/pods.ts";
import type { Json } from "../kit/snapshots.ts";
import { type Draws, draws, Met, shuffled } from "./draws.ts";

interface Sketch {
  readonly pods: readonly Json[];
  readonly containers: readonly Json[];
  readonly sandboxes: readonly Json[];
  readonly links: readonly string[];
  readonly flags: Record<string, unknown>;
  readonly ask: Json | undefined;
}
const PODS = ["a", "b", "d", "e", "f"];
/** Only few ages, so that many containers have the same creation time. */
const age = (d: Draws): number => 1000 * d.below(6);
function sketch(d: Draws): Sketch {
  const status = (): Json => d.pick([{ phase: "Running" }, { phase: "Running" }, { phase: "Failed" }, EVICTED]);
  const deleted = (): Json => (d.chance(4) ? { deletionTimestamp: "2026-01-31T11:00:00Z" } : {});
  const state = (): string => `CONTAINER_${d.pick(["EXITED", "EXITED", "EXITED", "RUNNING", "CREATED", "UNKNOWN"])}`;
  const numbers = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i);
  const containers = PODS.flatMap((p) =>
    numbers(d.below(6)).map((i) => {
      const more = {
        podSandboxId: `sb-${p}-${d.below(3)}`,
        state: state(),
        metadata: { name: d.pick(["c", "x"]), attempt: i },
      };
      return gcContainer(`container-${p}-${i}`, p, age(d), more);
    }),
  );
  return {
    pods: PODS.filter(() => !d.chance(3)).map((p) => pod(p, { status: status(), metadata: deleted() })),
    containers,
    sandboxes: PODS.flatMap((p) =>
      numbers(d.below(4)).map((i) => sandbox(`sb-${p}-${i}`, p, age(d), d.chance(4) ? READY : {})),
    ),
    links: containers.filter(() => d.chance(4)).map((c) => `p_n_c-${String(c["id"]).replaceAll("-", "")}.log`),
    flags: {
      sourcesReady: !d.chance(4),
      minimumContainerTTLMs: d.pick([0, 0, 2000]),
      maximumDeadContainersPerContainer: d.pick([-1, 0, 1, 1, 2]),
      maximumDeadContainers: d.pick([-1, -1, 0, 2, 5]),
    },
    ask: d.chance(2) ? UNDER_PRESSURE : undefined,
  };
}
const directories = PODS.map((p) => `default_${p}_uid-${p}`);
const decide = (s: Sketch, ask: Json | undefined = s.ask, flags = s.flags): Answer =>
  answer(
    gcNode(
      s.pods,
      { containers: s.containers, sandboxes: s.sandboxes, podLogDirectories: directories, danglingLogLinks: s.links },
      flags,
    ),
    ask,
  );
const CASES = 200;
const each = (seed: number, check: (s: Sketch, d: Draws) => void): void => {
  for (let i = 0; i < CASES; i++) {
    const d = draws(seed + i);
    check(sketch(d), d);
  }
};
const takenIds = ({ decision }: Answer): readonly string[] => decision.remove.map((r) => r.id);

test("container GC lists every object once, in order, and removes nothing that runs or is ready", () => {
  const met = new Met();
  each(1, (s) => {
    const { decision } = decide(s);
    const messages = [...decision.remove, ...decision.keep].map((t) => t.id).sort();
    const all = [...s.containers, ...s.sandboxes].map((x) => String(x["id"]));
    expect(messages).toEqual([...all, ...directories, ...s.links].sort());
    expect(decision.remove.map((r) => r.place)).toEqual(decision.remove.map((_, i) => i + 1));
    const targets = ["container", "sandbox", "pod-logs", "log-link"];
    const turns = decision.remove.map((r) => targets.indexOf(r.target));
    expect(turns).toEqual([...turns].sort());
    for (const r of decision.remove) {
      expect(["CONTAINER_RUNNING", "SANDBOX_READY"]).not.toContain(r.state);
      met.note(`${r.target} ${r.why}`);
    }
    for (const k of decision.keep) met.note(`${k.target} ${k.why}`);
  });
  expect(met.hardly(10)).toEqual([]);
  expect(Object.keys(met.counts).length).toBeGreaterThan(15);
});

test("container GC does not depend on the order of the runtime's lists and of the pods", () => {
  each(2000, (s, d) => {
    const other = {
      ...s,
      pods: shuffled(s.pods, d),
      containers: shuffled(s.containers, d),
      sandboxes: shuffled(s.sandboxes, d),
    };
    expect(decide(other).decision).toEqual(decide(s).decision);
  });
});

test("container GC leaves dead containers within the limits, and the newest of each name", () => {
  const met = new Met();
  each(4000, (s) => {
    const { decision } = decide(s);
    const { maxPerPodContainer, maxContainers } = decision.policy;
    const left = decision.keep.filter((k) => k.target === "container" && isDead(k.why));
    if (maxContainers >= 0) expect(left.length).toBeLessThanOrEqual(maxContainers);
    const byUnit = new Map<string, ContainerKept[]>();
    for (const k of left) byUnit.set(unitOf(k), [...(byUnit.get(unitOf(k)) ?? []), k]);
    for (const unit of byUnit.values()) {
      if (maxPerPodContainer >= 0) expect(unit.length).toBeLessThanOrEqual(maxPerPodContainer);
    }
    for (const r of decision.remove) {
      met.note(r.why);
      if (r.why !== "per-container-limit" && r.why !== "total-limit") continue;
      for (const k of byUnit.get(unitOf(r)) ?? []) expect(k.createdAtMs).toBeGreaterThanOrEqual(r.createdAtMs ?? 0);
    }
  });
  expect(met.hardly(10)).toEqual([]);
});
const isDead = (why: ContainerKept["why"]): boolean => why === "within-limits" || why === "sources-not-ready";
const unitOf = ({ pod, name }: Pick<ContainerKept, "pod" | "name">): string => `${pod?.uid} ${name}`;

test("container GC removes at least as much under pressure, and when all sources are ready", () => {
  const met = new Met();
  each(6000, (s) => {
    const calm = decide(s, undefined);
    const pressed = decide(s, UNDER_PRESSURE);
    const limited = (s.flags["maximumDeadContainers"] as number) >= 0;
    // with a total limit, the containers removed with ended pods leave room for others
    if (!limited) for (const id of takenIds(calm)) expect(takenIds(pressed)).toContain(id);
    met.note("more under pressure", takenIds(pressed).length > takenIds(calm).length);
    const ready = decide(s, s.ask, { ...s.flags, sourcesReady: true });
    const unready = decide(s, s.ask, { ...s.flags, sourcesReady: false });
    if (!limited) for (const id of takenIds(unready)) expect(takenIds(ready)).toContain(id);
    met.note("more once sources are ready", takenIds(ready).length > takenIds(unready).length);
  });
  expect(met.hardly(10)).toEqual([]);
});

test("a container GC pass that was carried out leaves nothing to remove for the next one", () => {
  const met = new Met();
  each(8000, (s) => {
    const taken = new Set(takenIds(decide(s)));
    const stays = (x: Json): boolean => !taken.has(String(x["id"]));
    const after = { ...s, containers: s.containers.filter(stays), sandboxes: s.sandboxes.filter(stays) };
    const again = decide(after).decision.remove.filter((r) => r.target === "container" || r.target === "sandbox");
    expect(again).toEqual([]);
    met.note("something went", taken.size > 0);
  });
  expect(met.hardly(10)).toEqual([]);
});

test("a failed removal adds no other removal, and keeps its sandbox", () => {
  const met = new Met();
  each(10_000, (s, d) => {
    const plan = decide(s);
    const failed = new Set(
      plan.decision.remove.filter((r) => r.target === "container" && d.chance(3)).map((r) => r.id),
    );
    const done = plan.decision.remove
      .filter((r) => r.target === "container")
      .map((r) => ({ id: r.id, end: failed.has(r.id) ? "failed" : "removed" }));
    const { decision } = decide(s, { ...s.ask, done });
    const held = new Set(s.containers.filter((c) => failed.has(String(c["id"]))).map((c) => String(c["podSandboxId"])));
    for (const r of decision.remove) {
      expect(takenIds(plan)).toContain(r.id);
      if (r.target === "sandbox") expect(held).not.toContain(r.id);
      if (r.target === "container") expect(r.end).toBe(failed.has(r.id) ? "failed" : "removed");
    }
    met.note("a sandbox is held", decision.remove.length < plan.decision.remove.length);
  });
  expect(met.hardly(10)).toEqual([]);
});
