import type { PassReport } from "../loop.ts";
import { harmlessCause } from "../plan/drift.ts";
import type { Problem } from "../ports.ts";
import type { CgroupRow, NodeStatus, PodUsage, SeenEvent } from "../status/node-status.ts";
import { passFigures, type TurnFigures } from "../status/pass-figures.ts";
import type { RefusedManifest } from "./desired-pods.ts";
import { podRow } from "./pod-row.ts";
import type { KnownPod, PodSet } from "./pod-set.ts";

export interface NodeViewParts {
  readonly nowMs: number;
  readonly nodeName: string;
  readonly set: PodSet;
  readonly runtime: NodeStatus["runtime"];
  /** How the last turn went; null: none has ended. */
  readonly turn: TurnFigures | null;
  readonly pass: PassReport | null;
  readonly usages: ReadonlyMap<string, PodUsage>;
  /** Undefined: no device plugins are served. */
  readonly devices?: NodeStatus["devices"];
  readonly probes?: NodeStatus["probes"];
  readonly problems: readonly Problem[];
  readonly refused: readonly RefusedManifest[];
  readonly events: readonly SeenEvent[];
}

/** The daemon as people see it, made when somebody asks. */
export function nodeView(parts: NodeViewParts): NodeStatus {
  const { nowMs, nodeName, set, runtime, turn, pass, usages, devices, probes, problems, refused, events } = parts;
  const cgroups = cgroupRows(pass);
  const cpusets = cpusetsOf(pass);
  const isUnheard = ({ record: { state } }: KnownPod): boolean =>
    set.seen === null && (state === "lives" || state === "ends");
  const pods = [...set.all()].map((known) =>
    podRow({
      known,
      status: isUnheard(known) ? null : set.statusOf(known, nowMs),
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
    devices,
    probes,
    problems: [...new Set(problems.map(({ from, message }) => `${from}: ${message}`))],
    refusedManifests: refused,
    events,
  };
}

/** By uid, as the files were after the pass. */
export function cgroupRows(pass: PassReport | null): ReadonlyMap<string, readonly CgroupRow[]> {
  const rows = new Map<string, CgroupRow[]>();
  if (pass?.cgroups === null || pass === null) return rows;
  const { differs } = pass;
  const differing = new Map(differs?.map((one) => [`${one.path} ${one.file}`, one] as const));
  const faults = faultsByFile(pass);
  for (const { pod, level, containerId, path, files } of pass.cgroups.cgroups) {
    if (pod === null || (level === "container" && containerId === null)) continue;
    const row = files.map(({ path: file, value }) => {
      const one = differing.get(`${path} ${file}`);
      const actual = differs === null ? null : one === undefined ? value : one.actual;
      return { file, wanted: value, actual, harmless: one && harmlessCause(one), fault: faults.get(`${path} ${file}`) };
    });
    rows.set(pod.uid, [...(rows.get(pod.uid) ?? []), { path, files: row }]);
  }
  return rows;
}

function faultsByFile({ applied }: PassReport): ReadonlyMap<string, string> {
  const faults = new Map<string, string>();
  for (const { step, status, message } of applied?.results ?? [])
    if (step.op === "write" && status === "failed") faults.set(`${step.path} ${step.file}`, message);
  return faults;
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
