import type { PassReport } from "../loop.ts";
import type { Problem } from "../ports.ts";
import type { CgroupRow, NodeStatus, PodUsage, SeenEvent } from "../status/node-status.ts";
import type { RefusedManifest } from "./desired-pods.ts";
import { podRow } from "./pod-row.ts";
import type { PodSet } from "./pod-set.ts";

export interface NodeViewParts {
  readonly nowMs: number;
  readonly nodeName: string;
  readonly set: PodSet;
  readonly runtime: NodeStatus["runtime"];
  /** How the last turn went; null: none has ended. */
  readonly turn: {
    readonly sequence: number;
    readonly at: string;
    readonly cpuMs: number;
    readonly tookMs: number;
  } | null;
  readonly pass: PassReport | null;
  readonly usages: ReadonlyMap<string, PodUsage>;
  readonly problems: readonly Problem[];
  readonly refused: readonly RefusedManifest[];
  readonly events: readonly SeenEvent[];
}

/** The daemon as people see it, made when somebody asks. */
export function nodeView(parts: NodeViewParts): NodeStatus {
  const { nowMs, nodeName, set, runtime, turn, pass, usages, problems, refused, events } = parts;
  const cgroups = cgroupRows(pass);
  const cpusets = cpusetsOf(pass);
  const pods = [...set.all()].map((known) =>
    podRow({
      known,
      status: set.statusOf(known, nowMs),
      cgroups: cgroups.get(known.uid) ?? [],
      cpusets: cpusets.get(known.uid) ?? new Map(),
      usage: usages.get(known.uid) ?? null,
    }),
  );
  return {
    at: new Date(nowMs).toISOString(),
    nodeName,
    pid: process.pid,
    mode: "enforce",
    runtime,
    pass: turn === null ? null : { ...turn, ...passFigures(pass) },
    pods,
    problems: [...new Set(problems.map(({ from, message }) => `${from}: ${message}`))],
    refusedManifests: refused.map(({ pod, faults }) => ({ pod, faults })),
    events,
  };
}

const passFigures = (pass: PassReport | null) => ({
  wrote: pass?.applied?.results.filter(({ status }) => status === "applied").length ?? 0,
  drift: pass?.drift.length ?? 0,
  decidedBy: pass?.decidedBy ?? null,
});

/** By uid. What differed when it was looked at, and was not put right then, differs still. */
export function cgroupRows(pass: PassReport | null): ReadonlyMap<string, readonly CgroupRow[]> {
  const rows = new Map<string, CgroupRow[]>();
  if (pass?.cgroups === null || pass === null) return rows;
  const done = new Set(
    (pass.applied?.results ?? []).flatMap(({ step, status }) =>
      step.op === "write" && (status === "applied" || status === "unchanged") ? [`${step.path} ${step.file}`] : [],
    ),
  );
  const differing = new Map(pass.drift.map((drift) => [`${drift.path} ${drift.file}`, drift] as const));
  for (const { pod, level, containerId, path, files } of pass.cgroups.cgroups) {
    if (pod === null || (level === "container" && containerId === null)) continue;
    const row = files.map(({ path: file, value }) => {
      const drift = done.has(`${path} ${file}`) ? undefined : differing.get(`${path} ${file}`);
      return { file, wanted: value, actual: drift?.actual ?? value };
    });
    rows.set(pod.uid, [...(rows.get(pod.uid) ?? []), { path, files: row }]);
  }
  return rows;
}

/** By uid and container. */
export function cpusetsOf(pass: PassReport | null): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const pods = new Map<string, Map<string, string>>();
  for (const { pod, container, values } of pass?.cgroups?.cgroups ?? []) {
    if (pod === null || container === null || values.cpusetCpus === undefined) continue;
    const sets = pods.get(pod.uid) ?? new Map<string, string>();
    pods.set(pod.uid, sets.set(container, values.cpusetCpus));
  }
  return pods;
}
