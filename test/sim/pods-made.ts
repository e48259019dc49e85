import type { ContainerConfig } from "../../actuator/containerd/messages.ts";
import type { Draws } from "../actuator/cgroups/draws.ts";
import { type Program, SERVES } from "./fake-pod-parts.ts";

/** A pod of a story, and what the story knows of it. */
export interface MadePod {
  readonly object: PodObject;
  readonly uid: string;
  /** What admission counts. */
  readonly cpuMilli: number;
  /** Container's name -> CPUs that it has alone. */
  readonly exclusive: ReadonlyMap<string, number>;
  /** Bytes that all its containers may have; null: some have no limit. */
  readonly memoryLimit: number | null;
  readonly isCritical: boolean;
  /** Comes to its end by itself. */
  readonly isJob: boolean;
}
interface PodObject {
  readonly apiVersion: "v1";
  readonly kind: "Pod";
  readonly metadata: Readonly<Record<string, unknown>> & { readonly name: string; readonly uid: string };
  readonly spec: Readonly<Record<string, unknown>> & { readonly containers: readonly ContainerObject[] };
}
interface ContainerObject {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly resources?: unknown;
}

const MIB = 2 ** 20;
const PRIORITY = 2_000_001_000;

/** What runs in a container, as its command says. `isHealed`: nobody fails any more. */
export function programOf({ command = [] }: Pick<ContainerConfig, "command">, isHealed: boolean): Program {
  const [what, text = "0"] = command;
  const ms = Number(text);
  switch (what) {
    case "deaf":
      return { ...SERVES, stopsMs: isHealed ? 0 : null };
    case "slow":
      return { ...SERVES, stopsMs: ms };
    case "job":
      return { runsMs: ms, exitCode: 0, stopsMs: 0 };
    case "crash":
      return isHealed ? SERVES : { runsMs: ms, exitCode: 1, stopsMs: 0 };
    default:
      return SERVES;
  }
}

export function madePod(d: Draws, number: number, image: () => string, isCritical: boolean): MadePod {
  const isJob = !isCritical && d.chance(8);
  const shape = isCritical ? d.pick(["exclusive", "burstable"] as const) : d.pick(SHAPES);
  const sizes = SIZES[shape](d, isCritical);
  const command = (): readonly string[] =>
    isJob
      ? ["job", String(1000 + d.below(20_000))]
      : d.pick([["serve"], ["serve"], ["slow", String(d.below(3000))], ["deaf"], ["crash", String(d.below(30_000))]]);
  const containers = sizes.map(
    (size, i): ContainerObject => ({
      name: `c${i}`,
      image: image(),
      command: command(),
      ...(size.cpu === 0 ? {} : { resources: resourcesOf(size) }),
    }),
  );
  const uid = `u${String(number).padStart(4, "0")}`;
  const extras = shape === "exclusive" ? {} : extrasOf(d, image);
  const isStatic = isCritical && d.chance(3);
  const object: PodObject = {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name: `p${number}`,
      namespace: "default",
      uid,
      annotations: { "kubernetes.io/config.source": isStatic ? "file" : "api" },
    },
    spec: {
      containers,
      ...extras,
      restartPolicy: isJob ? d.pick(["Never", "OnFailure"]) : "Always",
      terminationGracePeriodSeconds: d.pick([0, 1, 5, 30]),
      ...(isCritical ? { priorityClassName: "system-node-critical", priority: PRIORITY } : {}),
    },
  };
  return {
    object,
    uid,
    cpuMilli: sizes.reduce((sum, { cpu }) => sum + cpu, 0),
    exclusive: new Map(
      sizes.flatMap(({ cpu }, i) =>
        shape === "exclusive" && cpu % 1000 === 0 ? [[`c${i}`, cpu / 1000] as const] : [],
      ),
    ),
    memoryLimit:
      sizes.every((s) => s.isLimited) && extras.initContainers === undefined ? sizes.length * 64 * MIB : null,
    isCritical,
    isJob,
  };
}

interface Size {
  readonly cpu: number;
  readonly isLimited: boolean;
}
const SHAPES = ["effort", "burstable", "burstable", "guaranteed", "exclusive", "exclusive", "exclusive"] as const;
type Shape = (typeof SHAPES)[number];
const limited = (cpu: number): Size => ({ cpu, isLimited: true });
const SIZES: Readonly<Record<Shape, (d: Draws, isCritical: boolean) => readonly Size[]>> = {
  effort: () => [{ cpu: 0, isLimited: false }],
  burstable: (d, isCritical) =>
    Array.from({ length: 1 + d.below(2) }, () => ({
      cpu: isCritical ? 2000 : d.pick([100, 500, 1500]),
      isLimited: false,
    })),
  guaranteed: (d) => [limited(d.pick([250, 500]))],
  exclusive: (d) =>
    d.chance(3) ? [limited(1000), limited(d.pick([500, 2000]))] : [limited(d.pick([1000, 2000, 3000]))],
};
const resourcesOf = ({ cpu, isLimited }: Size): object => {
  const amounts = { cpu: `${cpu}m`, memory: "64Mi" };
  return { requests: amounts, ...(isLimited ? { limits: amounts } : {}) };
};

/** Init containers ask for nothing, so that what is counted stays plain. */
function extrasOf(
  d: Draws,
  image: () => string,
): { readonly initContainers?: readonly object[]; readonly volumes?: readonly object[] } {
  const init: object[] = [];
  if (d.chance(4)) init.push({ name: "prepare", image: image(), command: ["job", "2000"] });
  if (d.chance(4)) init.push({ name: "beside", image: image(), command: ["serve"], restartPolicy: "Always" });
  const volumes = d.chance(3) ? [{ name: "scratch", emptyDir: d.chance(2) ? { medium: "Memory" } : {} }] : [];
  return { ...(init.length > 0 ? { initContainers: init } : {}), ...(volumes.length > 0 ? { volumes } : {}) };
}

/** The same pod with another image in its first container, which an API server allows. */
export function withImage(made: MadePod, image: string): MadePod {
  const [first, ...rest] = made.object.spec.containers;
  if (first === undefined) return made;
  const spec = { ...made.object.spec, containers: [{ ...first, image }, ...rest] };
  return { ...made, object: { ...made.object, spec } };
}
/** A manifest that was edited: a pod of that name with another uid. */
export const asAnother = (made: MadePod, uid: string): MadePod => ({
  ...made,
  uid,
  object: { ...made.object, metadata: { ...made.object.metadata, uid } },
});
/** Somebody asked for its end. */
export function deletedAt(made: MadePod, at: string, graceSeconds: number): MadePod {
  const metadata = { ...made.object.metadata, deletionTimestamp: at, deletionGracePeriodSeconds: graceSeconds };
  return { ...made, object: { ...made.object, metadata } };
}
