import type { CgroupsDecision, DecisionOf } from "../../model/decision.ts";
import type { Side } from "./plans.ts";

/** A file of a cgroup that would hold something else; null: there would be none. */
export interface FileChange {
  readonly cgroup: string;
  readonly file: string;
  readonly before: string | null;
  readonly after: string | null;
}

const cgroupsIn = ({ decided }: Side): CgroupsDecision["cgroups"] | null =>
  decided !== null && "cgroups" in decided.decision ? decided.decision.cgroups : null;

/** The cgroup files that both plans write otherwise, in the order of the first; empty for other kinds. */
export function fileChanges(before: Side, after: Side): readonly FileChange[] {
  const first = cgroupsIn(before);
  const second = cgroupsIn(after);
  if (first === null || second === null) return [];
  const then = filesOf(first);
  const now = filesOf(second);
  return [...new Set([...then.keys(), ...now.keys()])].flatMap((key) => {
    const from = then.get(key) ?? null;
    const to = now.get(key) ?? null;
    const [cgroup, file] = key.split("\n") as [string, string];
    return from === to ? [] : [{ cgroup, file, before: from, after: to }];
  });
}
const filesOf = (cgroups: CgroupsDecision["cgroups"]): ReadonlyMap<string, string> =>
  new Map(cgroups.flatMap(({ path, files }) => files.map((file) => [`${path}\n${file.path}`, file.value])));

/** What goes on either side: pods that are evicted, images and containers that are removed. */
export interface Goings {
  /** `pods evicted`, `images removed`. */
  readonly what: string;
  readonly onlyBefore: readonly string[];
  readonly onlyAfter: readonly string[];
  readonly both: number;
}

/** Null for kinds that take nothing away. */
export function goings(before: Side, after: Side): Goings | null {
  const first = goneOf(before);
  const second = goneOf(after);
  const what = first?.what ?? second?.what;
  if (what === undefined) return null;
  const then = new Set(first?.names ?? []);
  const now = new Set(second?.names ?? []);
  return {
    what,
    onlyBefore: [...then].filter((name) => !now.has(name)),
    onlyAfter: [...now].filter((name) => !then.has(name)),
    both: [...then].filter((name) => now.has(name)).length,
  };
}

function goneOf({ decided }: Side): { readonly what: string; readonly names: readonly string[] } | null {
  if (decided === null) return null;
  const { decision } = decided;
  if ("evicted" in decision)
    return { what: "pods evicted", names: decision.evicted.map(({ pod }) => `${pod.namespace}/${pod.name}`) };
  if ("preempt" in decision && "admit" in decision)
    return { what: "pods ended for it", names: decision.preempt.map(({ namespace, name }) => `${namespace}/${name}`) };
  if ("freedBytes" in decision) return { what: "images removed", names: decision.remove.map(imageName) };
  if ("allSourcesReady" in decision) return { what: "containers removed", names: decision.remove.map(containerName) };
  return null;
}

type Removed<K extends "image-gc" | "container-gc"> = DecisionOf[K]["remove"][number];
const imageName = ({ names, id }: Removed<"image-gc">): string => names[0] ?? id;
const containerName = ({ target, pod, name, id }: Removed<"container-gc">): string => {
  const of = pod === null ? "" : `${pod.namespace}/${pod.name} `;
  return `${target} ${of}${name ?? ""} ${id.slice(0, 12)}`.replace(/\s+/g, " ");
};
