import { value } from "../model/amount.ts";
import { parseDuration } from "../model/duration.ts";
import { type KubeletConfiguration, kubeletConfiguration } from "../model/kubelet-configuration.ts";
import { parseQuantity } from "../model/quantity.ts";

/** A feature gate of the kubelet. kubelet: DefaultFeatureGate. */
export interface GateSpec {
  readonly stage: "alpha" | "beta" | "stable" | "deprecated";
  readonly isOn: boolean;
  /** It cannot be set to anything else. */
  readonly locked: boolean;
  /** On, it wants these on. */
  readonly wants: readonly string[];
}

/**
 * What a kubelet fills into the fields that a KubeletConfiguration leaves out, in the form of that document. kubelet:
 * SetDefaults_KubeletConfiguration. Named here are those that the code asks for by name; the others are there as well.
 */
export interface Defaults extends Readonly<Record<string, unknown>> {
  readonly cgroupDriver: "cgroupfs" | "systemd";
  readonly containerLogMaxFiles: number;
  readonly containerLogMaxSize: string;
  readonly containerLogMaxWorkers: number;
  readonly containerLogMonitorInterval: string;
  readonly containerRuntimeEndpoint: string;
  readonly cpuCFSQuotaPeriod: string;
  readonly cpuManagerPolicy: string;
  readonly crashLoopBackOff: { readonly maxContainerRestartPeriod: string };
  readonly evictionHard: Readonly<Record<string, string>> & { readonly "memory.available": string };
  readonly evictionPressureTransitionPeriod: string;
  readonly healthzPort: number;
  readonly imageGCHighThresholdPercent: number;
  readonly imageGCLowThresholdPercent: number;
  readonly imageMinimumGCAge: string;
  readonly logging: { readonly flushFrequency: string; readonly verbosity: number; readonly [field: string]: unknown };
  readonly maxPods: number;
  readonly nodeStatusReportFrequency: string;
  readonly podLogsDir: string;
  readonly port: number;
  readonly resolvConf: string;
  readonly runtimeRequestTimeout: string;
  readonly serializeImagePulls: boolean;
  readonly seccompDefault: boolean;
  readonly topologyManagerPolicy: string;
  readonly volumeStatsAggPeriod: string;
}

/** The values that the configuration leaves to the machine, by its cgroup version. kubelet 1.36: NewMainKubelet. */
type OfMachine = "singleProcessOOMKill";
type Field = Exclude<keyof KubeletConfiguration, "kind" | OfMachine>;
/** A KubeletConfiguration, as decisions read it, with every field. */
export type FullConfiguration = Pick<KubeletConfiguration, OfMachine> & {
  readonly [F in Field]-?: Exclude<NonNullable<KubeletConfiguration[F]>, "">;
};

/** Lists and maps that begin empty, in every version. */
const EMPTY = {
  allowedUnsafeSysctls: [],
  cgroupRoot: "",
  cpuManagerPolicyOptions: {},
  evictionMaxPodGracePeriod: 0,
  evictionMinimumReclaim: {},
  evictionSoft: {},
  evictionSoftGracePeriod: {},
  featureGates: {},
  kubeReserved: {},
  kubeReservedCgroup: "",
  memorySwap: {},
  podsPerCore: 0,
  qosReserved: {},
  reservedMemory: [],
  reservedSystemCPUs: "",
  systemReserved: {},
  systemReservedCgroup: "",
  topologyManagerPolicyOptions: {},
} as const satisfies KubeletConfiguration;

/** The values of a kubelet's flags that are not given; no KubeletConfiguration has fields for these. */
export interface FlagDefaults {
  readonly minimumContainerTTLMs: number;
  /** Dead containers that are kept; a negative number: all of them. */
  readonly maximumDeadContainersPerContainer: number;
  readonly maximumDeadContainers: number;
}

/** Rules that another version has otherwise, as data. */
export interface Behaviour {
  /** How far each of `cpuManagerPolicyOptions` is; those that are not stable wait for a gate. */
  readonly cpuManagerPolicyOptions: Readonly<Record<string, "alpha" | "beta" | "stable">>;
  /** Sysctls that any pod may set, and the first kernel that has them in a namespace (null: all). */
  readonly safeSysctls: ReadonlyMap<string, readonly [major: number, minor: number] | null>;
}

/** Texts that another version words otherwise. */
export interface Words {
  /** The kubelet does not start on cgroup v1. */
  readonly cgroupV1Refused: string;
  /** The User-Agent of a probe or a hook that asks over HTTP. */
  readonly httpUserAgent: (askedFor: string) => string;
  /** The same over gRPC, with the version that the kubelet is built with: see its go.mod. */
  readonly grpcUserAgent: string;
}

/** One minor version of the kubelet: all in which it differs from others. `v1_36.ts` is an example. */
export interface ProfileData {
  /** `1.36` */
  readonly version: string;
  /** `1.35` */
  readonly previousVersion: string;
  /** The kubelet whose sources were read: `1.36.3`. */
  readonly release: string;
  /** The policy version of decisions under this profile. Raised by every commit that changes an answer of a vector (docs/reference/policy-versions.md keeps the list). */
  readonly policyVersion: string;
  /** Those that are none of this version are not in it. */
  readonly gates: ReadonlyMap<string, GateSpec>;
  /** The Go type of each field of a KubeletConfiguration, by its path. */
  readonly fields: ReadonlyMap<string, string>;
  readonly defaults: Defaults;
  readonly flags: FlagDefaults;
  readonly behaviour: Behaviour;
  readonly words: Words;
}

export interface Profile extends ProfileData {
  /** The defaults of those fields that decisions read, parsed. */
  readonly configuration: FullConfiguration;
  /** Names of the fields of each object by its path; `""`: of the configuration itself. */
  readonly fieldNames: ReadonlyMap<string, readonly string[]>;
}

/** Throws on defaults that are no KubeletConfiguration: that is a fault of the profile's file. */
export const profileOfData = (data: ProfileData): Profile => ({
  ...data,
  configuration: { ...EMPTY, ...kubeletConfiguration.parse(data.defaults) } as FullConfiguration,
  fieldNames: namesByObject(data.fields),
});

function namesByObject(fields: ReadonlyMap<string, string>): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>([["", ["apiVersion", "kind"]]]);
  for (const path of fields.keys()) {
    const dot = path.lastIndexOf(".");
    const above = dot < 0 ? "" : path.slice(0, dot);
    const known = names.get(above);
    if (known === undefined) names.set(above, [path.slice(dot + 1)]);
    else known.push(path.slice(dot + 1));
  }
  return names;
}

/** Lines of `HEAD: ENTRIES`; what is indented by more than two spaces continues the line before it. */
const linesOf = (table: string): readonly (readonly [head: string, entries: readonly string[]])[] =>
  table
    .trim()
    .split(/\n {2}(?! )/)
    .map((line) => {
      const [head = "", entries = ""] = line.trim().split(": ");
      return [head, entries.split(/\s+/)];
    });

/** Reads lines `STAGE on|off [locked]: GATE...`, where `<A,B` behind a gate's name is what it wants. */
export const gatesOf = (table: string): ReadonlyMap<string, GateSpec> =>
  new Map(
    linesOf(table).flatMap(([head, entries]) => {
      const [stage, isOn, locked] = head.split(" ");
      return entries.map((entry) => {
        const [name = "", wants = ""] = entry.split("<");
        const spec: GateSpec = {
          stage: stage as GateSpec["stage"],
          isOn: isOn === "on",
          locked: locked === "locked",
          wants: wants === "" ? [] : wants.split(","),
        };
        return [name, spec] as const;
      });
    }),
  );

/** Reads lines `GO TYPE: PATH...`. */
export const fieldsOf = (table: string): ReadonlyMap<string, string> =>
  new Map(linesOf(table).flatMap(([type, paths]) => paths.map((path) => [path, type] as const)));

/** Milliseconds of a duration in a profile, such as `5m0s`. Throws on a text that is none. */
export function millisIn(duration: string): number {
  const parsed = parseDuration(duration);
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value.millis;
}

/** Bytes of a quantity in a profile, such as `10Mi`. Throws on a text that is none. */
export function bytesIn(quantity: string): number {
  const parsed = parseQuantity(quantity);
  if (!parsed.ok) throw new Error(parsed.error.message);
  return value(parsed.value.amount);
}

/** A gate that is named keeps its word, the others follow AllAlpha and AllBeta, then their default. kubelet 1.36: featureGate. */
export function isGateOn(
  { gates }: Pick<Profile, "gates">,
  named: Readonly<Record<string, boolean>>,
  gate: string,
): boolean {
  const own = named[gate];
  if (own !== undefined) return own;
  const spec = gates.get(gate);
  const all = spec?.stage === "alpha" ? named["AllAlpha"] : spec?.stage === "beta" ? named["AllBeta"] : undefined;
  return all ?? spec?.isOn ?? false;
}
