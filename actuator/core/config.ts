import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import { parseDuration } from "../../api/base/duration.ts";
import { type Fields, isObject } from "../../api/base/own.ts";
import { err, ok, type Result } from "../../api/base/result.ts";
import { parseDocuments } from "../../api/documents/parse.ts";
import type { SourceDocument } from "../../api/documents/problem.ts";
import { problemText } from "../../api/documents/problem.ts";
import { absolutePath, wholeNumber } from "../../api/model/fields.ts";
import { knownVersion, NEWEST, PROFILES } from "../../api/profiles/index.ts";
import { millisIn } from "../../api/profiles/profile.ts";
import { DEFAULT_ENDPOINT, parseListen, socketPathFault, socketPathOf } from "./addresses.ts";
import { readText } from "./read-text.ts";
import {
  dangerFaults,
  faultsOf,
  KUBELET_DIRECTORY,
  NODE_NAME,
  NODE_NAME_FORM,
  type SettingFault,
} from "./setting-faults.ts";

/** The content of a settings file. */
export interface SettingsFile {
  readonly settings: Fields;
  /** The fault with the place of its setting in the file: `actuator.yaml:3:7: mode: ...`. */
  faultText(fault: SettingFault): string;
}
const MAX_BYTES = 1024 * 1024;

/** Reads YAML or JSON; a file in which everything is a comment sets nothing. Errors: all that is wrong, with file and line. */
export async function readSettingsFile(file: string): Promise<Result<SettingsFile, readonly string[]>> {
  const text = await readText(file === "-" ? process.stdin : file, named(file), MAX_BYTES);
  if (!text.ok) return err([problemText(text.error)]);
  const { documents, problems } = parseDocuments(text.value, named(file));
  if (problems.length > 0) return err(problems.map(({ document: _one, ...problem }) => problemText(problem)));
  const [only, second] = documents;
  if (second !== undefined) return err([`${placeText(second, [])}: a second document: settings are one`]);
  if (only === undefined) return ok({ settings: {}, faultText: ({ setting, message }) => `${setting}: ${message}` });
  if (!isObject(only.value)) return err([`${placeText(only, [])}: must be settings such as \`mode: observe\``]);
  const faultText = ({ setting, message }: SettingFault): string =>
    `${placeText(only, [setting])}: ${setting}: ${message}`;
  return ok({ settings: withOff(only.value), faultText });
}

/** YAML 1.1, which Kubernetes uses, parses an unquoted `off` as false. */
const OFF = ["pods", "devicePlugins", "draDrivers", "garbageCollection", "statusListen"];
const withOff = (settings: Fields): Fields =>
  Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [name, value === false && OFF.includes(name) ? "off" : value]),
  );

const named = (file: string): string => (file === "-" ? "standard input" : file);

function placeText({ file, place }: SourceDocument, path: readonly string[]): string {
  const { line, column } = place(path);
  return `${file}:${line}:${column}`;
}

/** The kubelet's directories. */
const DEVICE_DIRECTORIES = {
  devicePluginsDirectory: "/var/lib/kubelet/device-plugins",
  pluginsRegistryDirectory: "/var/lib/kubelet/plugins_registry",
  podResourcesDirectory: "/var/lib/kubelet/pod-resources",
} as const;
const REGISTRY = "plugins_registry";

/**
 * Adds the default plugin registry directory beside the device plugin directory if that is not the kubelet's: in the
 * kubelet's own registry, drivers of its volumes would be told that they are not registered.
 */
function withRegistry(settings: Fields): Fields {
  const { devicePluginsDirectory: directory, pluginsRegistryDirectory } = settings;
  const isOther = typeof directory === "string" && directory !== DEVICE_DIRECTORIES.devicePluginsDirectory;
  if (!isOther || !directory.startsWith("/") || pluginsRegistryDirectory !== undefined) return settings;
  return { ...settings, pluginsRegistryDirectory: join(dirname(directory), REGISTRY) };
}

/**
 * Faults of directories: two sockets with one name, both kinds of plugins in one directory, or a kubelet's directory
 * that was not named explicitly.
 */
function directoryFaults(given: Fields): readonly SettingFault[] {
  if (given["devicePlugins"] !== "serve" && given["draDrivers"] !== "serve") return [];
  const settings = withRegistry(given);
  const faults: SettingFault[] = [];
  const firsts = new Map<unknown, string>();
  for (const [setting, usual] of Object.entries(DEVICE_DIRECTORIES)) {
    const directory = settings[setting] ?? usual;
    const first = firsts.get(directory);
    if (first === undefined) firsts.set(directory, setting);
    else faults.push({ setting, message: `is ${first} as well: each needs a directory of its own` });
  }
  const { pluginsRegistryDirectory: usual } = DEVICE_DIRECTORIES;
  if (settings !== given && settings["pluginsRegistryDirectory"] === usual) {
    const message = `must be named: beside devicePluginsDirectory it is ${usual}, which is a kubelet's`;
    faults.push({ setting: "pluginsRegistryDirectory", message });
  }
  return faults;
}

const seconds = (min: number) => z.number().min(min).max(86_400);
const file = z.string().min(1).max(4096);
const endpoint = z.string().superRefine((text, ctx) => {
  const path = socketPathOf(text);
  if (!path.ok) ctx.addIssue({ code: "custom", message: path.error });
});
const listen = z.string().superRefine((text, ctx) => {
  const address = parseListen(text);
  if (!address.ok) ctx.addIssue({ code: "custom", message: address.error });
});
/** The directory of a socket, since the kernel limits the length of its path. */
const socketDirectory = (socket: string) =>
  absolutePath.superRefine((directory, ctx) => {
    // another check reports this
    if (!directory.startsWith("/")) return;
    const fault = socketPathFault(join(directory, socket));
    if (fault !== undefined) ctx.addIssue({ code: "custom", message: `cannot hold ${socket}: ${fault}` });
  });
/** A Go duration, as in the kubelet's flag. */
const duration = z.string().transform((text, ctx) => {
  const parsed = parseDuration(text);
  if (parsed.ok && Number.isSafeInteger(parsed.value.millis)) return parsed.value;
  ctx.addIssue({ code: "custom", message: parsed.ok ? "must be whole milliseconds" : parsed.error });
  return z.NEVER;
});
/** Bounds of a Go int32. */
const limit = wholeNumber(-2147483648, 2147483647);

/** A kubelet that has a profile. */
const kubeletVersion = z.string().superRefine((text, ctx) => {
  const known = knownVersion("", text);
  const versions = PROFILES.map(({ version }) => version).join(" or ");
  if (!known.ok) ctx.addIssue({ code: "custom", message: `must be the version of a known kubelet: ${versions}` });
});

export const DEFAULT_EXEC_LIMIT = 64;

/** The daemon's settings; a file may contain them as YAML or JSON, and flags of the same names override it. */
const schema = z.strictObject({
  /** `observe` writes nothing to cgroupfs; `enforce` carries plans out. */
  mode: z.enum(["observe", "enforce"]).default("observe"),
  nodeName: z
    .string()
    .regex(NODE_NAME, NODE_NAME_FORM)
    .default(() => hostname().toLowerCase()),
  /** A cgroup of our own in every hierarchy; nothing outside it is ever written. An observer may use `/`. */
  cgroupRoot: z
    .string()
    .regex(
      /^(?:\/|(?:\/[A-Za-z0-9][A-Za-z0-9._-]*)+)$/,
      "must be a path of its own below the cgroup mounts, such as /nodewise",
    )
    .default("/nodewise"),
  cgroupMount: absolutePath.default("/sys/fs/cgroup"),
  /** Journal and outbox live here, readable by this user only. */
  stateDir: file,
  /** A KubeletConfiguration, YAML or JSON; absent: the kubelet's defaults. */
  kubeletConfiguration: file.optional(),
  /** Version of the kubelet whose decisions and state files are reproduced: `1.37`. */
  kubeletVersion: kubeletVersion.default(NEWEST.version),
  /** The directory of a kubelet's state files, which are only read. */
  kubeletDir: file.default(KUBELET_DIRECTORY),
  /** A directory (or a file) of static pods. */
  manifests: file.optional(),
  /** A URL that returns a v1.PodList, instead of `manifests`: a kubelet's /pods, or the API server's list for the node. */
  podsUrl: z.url({ protocol: /^https?$/ }).optional(),
  podsTokenFile: file.optional(),
  podsCaFile: file.optional(),
  /** True: the kubelet of `podsUrl` has no API server, so its static pods are all pods of the node. */
  standaloneKubelet: z.boolean().default(false),
  /** The policy API; absent: every decision is made here. */
  api: z.url({ protocol: /^https?$/ }).optional(),
  apiTokenFile: file.optional(),
  apiTimeoutSeconds: seconds(0.1).default(5),
  /** The kubelet refreshes its tiers each minute. */
  intervalSeconds: seconds(1).default(60),
  /** `existing`: the runtime makes containers' cgroups. `create`: there is no runtime, make them too. */
  containers: z.enum(["existing", "create"]).default("existing"),
  removeOrphans: z.boolean().default(true),
  /**
   * Whether dead containers, their logs and images are removed: `observe` decides and reports, `enforce` removes.
   * Independent of `mode`, which is about cgroups.
   */
  garbageCollection: z.enum(["off", "observe", "enforce"]).default("off"),
  /**
   * `enforce`: runs the pods of `manifests` or `podsUrl`: admits, starts, restarts and ends them. The daemon never stops anything
   * that it did not start.
   */
  pods: z.enum(["off", "enforce"]).default("off"),
  /** `static`: as in a kubelet, manifests are critical and never evicted. `ordinary`: by their priority, like pods of an API server. */
  manifestPods: z.enum(["static", "ordinary"]).default("static"),
  /** Volumes, hosts files and termination messages of pods lie below it. */
  podsDirectory: absolutePath.default("/var/lib/nodewise/pods"),
  /** The interval at which the runtime and the pod sources are read. */
  syncSeconds: seconds(0.1).default(1),
  /** The interval at which resource shortages are checked; the kubelet's is 10 seconds. */
  evictionPeriodSeconds: seconds(0.1).default(10),
  /** The interval at which a refused pod is retried although nothing has changed. */
  retrySeconds: seconds(1).default(60),
  /**
   * `serve`: device plugins register here as with a kubelet, the daemon's pods get their devices, and pod-resources/kubelet.sock
   * reports the allocations.
   */
  devicePlugins: z.enum(["off", "serve"]).default("off"),
  /** Contains kubelet.sock, and the sockets of plugins that register there. */
  devicePluginsDirectory: socketDirectory("kubelet.sock").default(DEVICE_DIRECTORIES.devicePluginsDirectory),
  /** Sockets of plugins that wait to be found; by default beside `devicePluginsDirectory`, if that is not the kubelet's. */
  pluginsRegistryDirectory: absolutePath.default(DEVICE_DIRECTORIES.pluginsRegistryDirectory),
  /** The socket of the podresources API. */
  podResourcesDirectory: socketDirectory("kubelet.sock").default(DEVICE_DIRECTORIES.podResourcesDirectory),
  /** The longest wait of a pod for a plugin that has not registered (again) since the daemon started. */
  deviceWaitSeconds: seconds(0).default(300),
  /**
   * `serve`: DRA drivers register in `pluginsRegistryDirectory`, and prepare the ResourceClaims of the daemon's pods. The claims come
   * from the source of the pods: the files of `manifests`, or the API server of `podsUrl`.
   */
  draDrivers: z.enum(["off", "serve"]).default("off"),
  /** True: probes follow the documentation where the kubelet does not. */
  strictProbes: z.boolean().default(false),
  /**
   * `even`: the first attempts of probes with one period are spread over it. `kubelet`: by chance right after the start,
   * and later all probes of a pod at the same moment.
   */
  probeSpread: z.enum(["even", "kubelet"]).default("even"),
  /** The number of exec probes that run at the same time; the others wait. */
  maxExecProbes: wholeNumber(1, 4096).default(DEFAULT_EXEC_LIMIT),
  /** `hold`: while many unrelated pods fail their liveness probes together, none of them is restarted, for at most two minutes. */
  probeGuard: z.enum(["off", "hold"]).default("off"),
  /** True: a clean shutdown stops the pods, those of the lowest priority first; false: they keep running. */
  drain: z.boolean().default(false),
  /** Address for status, events and metrics, read-only; `off`: none. Absent: 127.0.0.1:10260 if pods are run, otherwise none. */
  statusListen: listen.optional(),
  /** CRI v1 over a unix socket. */
  runtimeEndpoint: endpoint.default(DEFAULT_ENDPOINT),
  /** Deadline of one call; the kubelet's runtimeRequestTimeout. */
  runtimeTimeoutSeconds: seconds(0.1).default(millisIn(NEWEST.defaults.runtimeRequestTimeout) / 1000),
  podLogsDirectory: absolutePath.default(NEWEST.defaults.podLogsDir),
  containerLogsDirectory: absolutePath.default("/var/log/containers"),
  /** The kubelet's timers. */
  containerGCPeriodSeconds: seconds(0.1).default(60),
  imageGCPeriodSeconds: seconds(0.1).default(300),
  /** --minimum-container-ttl-duration, --maximum-dead-containers-per-container, --maximum-dead-containers */
  minimumContainerTTL: duration.optional(),
  maximumDeadContainersPerContainer: limit.optional(),
  maximumDeadContainers: limit.optional(),
});
export type ActuatorConfig = z.output<typeof schema>;

/** Names of all settings. */
export const SETTINGS = Object.keys(schema.shape) as readonly (keyof ActuatorConfig)[];

/** Settings that a running daemon applies at its next sync after a reload; the others need a restart. */
export const LIVE_SETTINGS = [
  "kubeletConfiguration",
  "manifests",
  "manifestPods",
  "podsUrl",
  "podsTokenFile",
  "podsCaFile",
  "standaloneKubelet",
  "api",
  "apiTokenFile",
  "apiTimeoutSeconds",
  "intervalSeconds",
  "syncSeconds",
  "evictionPeriodSeconds",
  "retrySeconds",
  "containerGCPeriodSeconds",
  "imageGCPeriodSeconds",
  "minimumContainerTTL",
  "maximumDeadContainersPerContainer",
  "maximumDeadContainers",
  "removeOrphans",
  "drain",
] as const satisfies readonly (keyof ActuatorConfig)[];

/** Errors: everything that is wrong. */
export function checkSettings(given: Fields): Result<ActuatorConfig, readonly SettingFault[]> {
  const settings = withRegistry(given);
  const parsed = schema.safeParse(settings);
  const single = parsed.success ? [] : faultsOf(parsed.error.issues, settings, SETTINGS);
  const faults = [...single, ...faultsTogether(given)];
  return parsed.success && faults.length === 0 ? ok(parsed.data) : err(faults);
}

/** Errors: every setting that is wrong, by name, in one line. */
export function actuatorConfig(settings: Fields): Result<ActuatorConfig, string> {
  const checked = checkSettings(settings);
  return checked.ok ? checked : err(checked.error.map(({ setting, message }) => `${setting}: ${message}`).join("; "));
}

/** Settings that are well by themselves and do not go together. */
function faultsTogether(settings: Fields): readonly SettingFault[] {
  const { manifests, podsUrl, cgroupRoot, mode, pods, containers, standaloneKubelet } = settings;
  const faults: SettingFault[] = [];
  if (cgroupRoot === "/" && mode === "enforce") {
    const message = "`/` is the whole machine, which is only observed: name a cgroup of its own for mode enforce";
    faults.push({ setting: "cgroupRoot", message });
  }
  if (pods === "enforce" && (mode === undefined || mode === "observe")) {
    const message = "they run in cgroups of their own, so enforce needs `mode: enforce` too";
    faults.push({ setting: "pods", message });
  }
  if (pods === "enforce" && manifests === undefined && podsUrl === undefined) {
    const message = "enforce needs `manifests` or `podsUrl`: without any pods to run those that it runs would end";
    faults.push({ setting: "pods", message });
  }
  if (pods === "enforce" && containers === "create") {
    const message = "the runtime makes them where pods are run: leave `existing`, or set `pods: off`";
    faults.push({ setting: "containers", message });
  }
  for (const setting of ["devicePlugins", "draDrivers"]) {
    if (settings[setting] !== "serve" || (pods !== undefined && pods !== "off")) continue;
    const message = "the devices are for pods that are run here, so serve needs `pods: enforce` too";
    faults.push({ setting, message });
  }
  faults.push(...directoryFaults(settings), ...dangerFaults(settings));
  if (standaloneKubelet === true && podsUrl === undefined) {
    const message = "it is about the kubelet that podsUrl asks: set podsUrl to its /pods, or leave it out";
    faults.push({ setting: "standaloneKubelet", message });
  }
  if (manifests !== undefined && podsUrl !== undefined) {
    faults.push({
      setting: "podsUrl",
      message: "manifests is set as well, and pods come from one place: set only one",
    });
  }
  return faults;
}

/** The result of a reload of the settings. */
export interface Reloaded {
  /** Changes that take effect at the next sync. */
  readonly taken: readonly SettingChange[];
  /** Changes that need a restart of the daemon. */
  readonly left: readonly SettingChange[];
}
/** A changed setting; undefined: it is not set. */
export interface SettingChange {
  readonly setting: keyof ActuatorConfig;
  readonly from: unknown;
  readonly to: unknown;
}

/**
 * Writes into `config`, which the whole daemon reads at each sync, those settings of `next` that may change at run
 * time. INVARIANT: the settings in force are consistent: if they would not be, nothing is changed.
 */
export function takeOver(config: ActuatorConfig, next: ActuatorConfig): Reloaded {
  const changes = SETTINGS.filter((setting) => !isDeepStrictEqual(config[setting], next[setting])).map(
    (setting): SettingChange => ({ setting, from: config[setting], to: next[setting] }),
  );
  const live = changes.filter(isLive);
  const merged = { ...config, ...Object.fromEntries(live.map(({ setting, to }) => [setting, to])) };
  const taken = faultsTogether(merged).length === 0 ? live : [];
  for (const { setting, to } of taken) Object.assign(config, { [setting]: to });
  return { taken, left: changes.filter((change) => !taken.includes(change)) };
}

const LIVE: ReadonlySet<string> = new Set(LIVE_SETTINGS);
/** Having an API or not decides what is stored for it, so it cannot change while the daemon runs. */
const isLive = ({ setting, from, to }: SettingChange): boolean =>
  LIVE.has(setting) && (setting !== "api" || (from !== undefined && to !== undefined));
