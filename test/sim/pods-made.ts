import type { ContainerConfig } from "../../actuator/containerd/messages.ts";
import type { Draws } from "../actuator/cgroups/draws.ts";
import { type Program, SERVES } from "./fake-pod-parts.ts";

/** A pod of a story, and the story's knowledge about it. */
export interface MadePod {
  readonly object: PodObject;
  readonly uid: string;
  readonly isCritical: boolean;
  /** The pod ends by itself. */
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
  readonly resources?: { readonly requests: Amounts; readonly limits?: Amounts };
  readonly resizePolicy?: readonly object[];
}
type Amounts = Readonly<Record<"cpu" | "memory", string>>;

const PRIORITY = 2_000_001_000;

/** The program of a container, from its command. `isHealed`: no program fails any more. */
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
  const isJob = !isCritical && d.chance(4);
  const shape = isCritical ? d.pick(["exclusive", "burstable"] as const) : d.pick(SHAPES);
  const sizes = SIZES[shape](d, isCritical);
  const command = (): readonly string[] =>
    isJob
      ? ["job", String(1000 + d.below(60_000))]
      : d.pick([["serve"], ["serve"], ["slow", String(d.below(3000))], ["deaf"], ["crash", String(d.below(30_000))]]);
  const containers = sizes.map(
    (size, i): ContainerObject => ({
      name: `c${i}`,
      image: image(),
      command: command(),
      ...(size.cpu === 0 ? {} : { resources: resourcesOf(size) }),
      ...(d.chance(3) ? { resizePolicy: [{ resourceName: "cpu", restartPolicy: "RestartContainer" }] } : {}),
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
      ...(isCritical
        ? { priorityClassName: "system-node-critical", priority: PRIORITY }
        : { priority: d.pick([0, 0, 100, 1000]) }),
    },
  };
  return {
    object,
    uid,
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
const resourcesOf = ({ cpu, isLimited }: Size, memory = 64): NonNullable<ContainerObject["resources"]> => {
  const amounts = { cpu: `${cpu}m`, memory: `${memory}Mi` };
  return { requests: amounts, ...(isLimited ? { limits: amounts } : {}) };
};

/** Init containers have no requests, which keeps the sums simple. */
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

/** The same pod with another image in its first container, a change that an API server allows. */
export function withImage(made: MadePod, image: string): MadePod {
  const [first, ...rest] = made.object.spec.containers;
  if (first === undefined) return made;
  const spec = { ...made.object.spec, containers: [{ ...first, image }, ...rest] };
  return { ...made, object: { ...made.object, spec } };
}
/**
 * The same pod with changed resources in one of its containers; null: no container has requests. A change of CPUs is
 * never admitted for a pod with exclusive CPUs or a Guaranteed pod; such changes are only requested now and then.
 */
export function resized(made: MadePod, d: Draws): MadePod | null {
  const { containers } = made.object.spec;
  const asking = containers.filter(({ resources }) => resources !== undefined);
  if (asking.length === 0) return null;
  const chosen = d.pick(asking);
  const isLimited = chosen.resources?.limits !== undefined;
  const cpu = Number.parseInt(chosen.resources?.requests.cpu ?? "", 10);
  const isCpu = !isLimited || d.chance(5);
  const size = { cpu: isCpu ? d.pick([50, 700, 1500, 2500, 4500, 6500]) : cpu, isLimited };
  const resources = resourcesOf(size, isLimited ? d.pick([32, 64, 96, 128]) : 64);
  const spec = { ...made.object.spec, containers: containers.map((c) => (c === chosen ? { ...c, resources } : c)) };
  return { ...made, object: { ...made.object, spec } };
}
/** The pod of an edited manifest: the same name with another uid. */
export const asAnother = (made: MadePod, uid: string): MadePod => ({
  ...made,
  uid,
  object: { ...made.object, metadata: { ...made.object.metadata, uid } },
});
/** The pod after its deletion was requested. */
export function deletedAt(made: MadePod, at: string, graceSeconds: number): MadePod {
  const metadata = { ...made.object.metadata, deletionTimestamp: at, deletionGracePeriodSeconds: graceSeconds };
  return { ...made, object: { ...made.object, metadata } };
}
