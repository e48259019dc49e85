import type { PodRuntime } from "../../../actuator/containerd/cri.ts";
import { openPodRuntime } from "../../../actuator/containerd/pods.ts";
import { DEFAULT_STATUS_LISTEN, hostText, parseListen } from "../../../actuator/core/addresses.ts";
import type { ActuatorConfig } from "../../../actuator/core/config.ts";
import {
  type ForeignSandbox,
  foreignSandboxes,
  runningIn,
  SHORT_ID,
} from "../../../actuator/lifecycle/foreign-sandbox.ts";
import { machineFiles } from "../../../actuator/machine/files.ts";
import { type KubeletProcess, type KubeletTraces, kubeletsOn } from "../../../actuator/machine/kubelets.ts";
import { podsSource } from "../../../actuator/manifests/pods-source.ts";
import { hostAddresses } from "../../../actuator/pods/networking/node-addresses.ts";
import { systemClock } from "../../../actuator/pods/pod-clock.ts";
import { desiredPodsReader } from "../../../actuator/pods/records/desired-pods.ts";
import { podsDaemon } from "../../../actuator/pods/volumes/claims.ts";
import {
  fullName,
  type PodsToRun,
  priorityOf,
  type StopEnd,
  type TakeoverPlan,
  type TakeoverResult,
  type TakeoverStop,
  takeOver,
  takeoverPlan,
} from "../../../actuator/takeover/take-over.ts";
import { ok, type Result } from "../../base/result.ts";
import { profileOf } from "../../profiles/index.ts";
import { printable, wrap } from "../../text/style.ts";
import { table } from "../../text/table.ts";
import { durationText } from "../../text/time-text.ts";
import { configOf } from "../actuator/settings.ts";
import type { Cli } from "../cli.ts";
import { statusSource } from "../inputs/daemon-status.ts";
import {
  EXIT,
  type Fault,
  type Form,
  fault,
  type Outcome,
  printData,
  printText,
  stopSignal,
  type Terminal,
} from "../terminal.ts";

type RuntimeAndNode = Pick<ActuatorConfig, "runtimeEndpoint" | "nodeName">;

/** What is (or would be) stopped in which order, and what stays and why. */
function planText(place: RuntimeAndNode, plan: TakeoverPlan, isDryRun: boolean, terminal: Terminal): string {
  const { paint } = terminal;
  const { stops, stays } = plan;
  const head = `node ${place.nodeName}, runtime ${place.runtimeEndpoint}`;
  const what = isDryRun ? "dry run, nothing is stopped: --stop stops them" : "";
  const none = "no other program runs a pod here that Nodewise is to run: nothing to stop\n";
  return [
    `${printable([head, what].filter((part) => part !== "").join("; "))}\n`,
    stops.length === 0
      ? none
      : `${paint("bold", isDryRun ? "would be stopped, in this order" : "will be stopped, in this order")}\n${stopsTable(stops, terminal)}`,
    stays.length === 0 ? "" : `${paint("bold", "stays")}\n${staysTable(stays, terminal)}`,
  ]
    .filter((part) => part !== "")
    .join("\n");
}

function stopsTable(stops: readonly TakeoverStop[], { columns: width, paint }: Terminal): string {
  const columns = [
    { title: "", align: "right" },
    { title: "POD", shrinkTo: 16 },
    { title: "PRIORITY", align: "right", giveUp: 1 },
    { title: "SANDBOX" },
    { title: "AGE", align: "right", giveUp: 2 },
    { title: "GRACE", align: "right" },
    { title: "CONTAINERS", shrinkTo: 12 },
  ] as const;
  const rows = stops.map((stop, i) => ({
    cells: [
      `${i + 1}`,
      printable(fullName(stop.pod)),
      `${priorityOf(stop)}`,
      printable(stop.sandbox.id.slice(0, SHORT_ID)),
      ageOf(stop.sandbox),
      `${stop.graceSeconds}s`,
      printable(containersText(stop)),
    ],
  }));
  return table(columns, rows, width, paint);
}

/** `app (preStop), log, then proxy`: those after `then` wait for the ones before. */
function containersText({ containers }: TakeoverStop): string {
  if (containers.length === 0) return "none runs";
  const text = ({ name, preStop }: TakeoverStop["containers"][number]): string =>
    preStop === null ? name : `${name} (preStop)`;
  return containers
    .map((one, i) => `${i === 0 ? "" : one.waitsFor.length > 0 ? ", then " : ", "}${text(one)}`)
    .join("");
}

function staysTable(stays: TakeoverPlan["stays"], { columns: width, paint }: Terminal): string {
  const columns = [
    { title: "POD", shrinkTo: 16 },
    { title: "SANDBOX" },
    { title: "AGE", align: "right", giveUp: 1 },
    { title: "RUNNING", align: "right" },
  ] as const;
  const rows = stays.map(({ sandbox, why }) => ({
    cells: [
      printable(fullName(sandbox)),
      printable(sandbox.id.slice(0, SHORT_ID)),
      ageOf(sandbox),
      `${runningIn(sandbox).length}`,
    ],
    notes: wrap(printable(why), width - 2).map((line) => paint("dim", `  ${line}`)),
  }));
  return table(columns, rows, width, paint);
}

const ageOf = ({ createdAtMs }: ForeignSandbox): string => durationText(Math.max(0, Date.now() - createdAtMs));

/** One line on how a stop ended. */
function endLine({ stop, outcome, message, tookMs }: StopEnd, { paint }: Terminal): string {
  const of = printable(`${fullName(stop.pod)} (sandbox ${stop.sandbox.id.slice(0, SHORT_ID)})`);
  if (outcome === "stopped") return `${paint("green", "stopped")}  ${of} in ${(tookMs / 1000).toFixed(1)} s\n`;
  return `${paint(outcome === "failed" ? "red" : "yellow", outcome)}  ${of}: ${printable(message)}\n`;
}

interface TakeoverContext {
  /** The kubelets that use the runtime. */
  readonly kubelets: readonly KubeletProcess[];
  readonly isDryRun: boolean;
}
/** The plan as data, with `outcome` and `message` of what was stopped. */
function planData(
  { nodeName, runtimeEndpoint }: RuntimeAndNode,
  { stops, stays }: TakeoverPlan,
  { kubelets, isDryRun, ends, cameBack }: TakeoverResult & TakeoverContext,
): object {
  const endOf = new Map(ends.map(({ stop, outcome, message, tookMs }) => [stop, { outcome, message, tookMs }]));
  return {
    node: nodeName,
    runtimeEndpoint,
    dryRun: isDryRun,
    kubelets: kubelets.map(({ pid, name }) => ({ pid, name })),
    stops: stops.map((stop) => ({
      pod: fullName(stop.pod),
      sandbox: sandboxData(stop.sandbox),
      priority: priorityOf(stop),
      graceSeconds: stop.graceSeconds,
      containers: stop.containers.map(({ containerId, name, waitsFor, preStop }) => ({
        id: containerId,
        name,
        waitsFor,
        preStop: preStop !== null,
      })),
      ...endOf.get(stop),
    })),
    stays: stays.map(({ sandbox, why }) => ({ pod: fullName(sandbox), sandbox: sandboxData(sandbox), why })),
    ...(cameBack === null ? {} : { cameBack }),
  };
}
const sandboxData = (sandbox: ForeignSandbox) => ({
  id: sandbox.id,
  uid: sandbox.uid,
  createdAt: new Date(sandbox.createdAtMs).toISOString(),
  ready: sandbox.isReady,
  running: runningIn(sandbox).length,
});

/** `nodewise takeover`: shows what would be stopped, or stops it. */
export async function takeover(names: readonly string[], given: TakeoverFlags, cli: Cli): Promise<Outcome> {
  const { stop, dryRun: _dry, withoutDaemon: _without, kubeletElsewhere: _elsewhere, ...flags } = given;
  const config = await configOf({ ...flags, removeOrphans: true }, cli.env);
  if (!config.ok) return fault(EXIT.badInput, ...config.error);
  if (config.value.manifests === undefined && config.value.podsUrl === undefined)
    return fault(
      EXIT.badInput,
      "which pods are to run here? Give the actuator's --settings, or --manifests, or --pods-url",
    );
  const read = podsReader(config.value, cli);
  const podsToRun = await read();
  if (podsToRun === null) return fault(EXIT.badInput, "the pods that are to run here cannot be read");
  const unknown = names.filter((name) => ![...podsToRun.pods.values()].some((pod) => fullName(pod) === name));
  if (unknown.length > 0) return fault(EXIT.badInput, ...unknown.map((name) => notToRun(name, podsToRun)));
  const { runtimeEndpoint: endpoint, runtimeTimeoutSeconds } = config.value;
  const runtime = openPodRuntime({ endpoint, timeoutMs: runtimeTimeoutSeconds * 1000 });
  if (!runtime.ok) return fault(EXIT.badInput, runtime.error);
  try {
    const plan = await planOf(runtime.value, config.value, podsToRun, names);
    if (!plan.ok) return plan;
    const traces = kubeletsOn(config.value)(true);
    const kubelets = traces.processes.filter(({ uses }) => uses === "this");
    const shown = { config: config.value, plan: plan.value, kubelets, isDryRun: stop !== true };
    if (stop === true) {
      const refused = await refusalOf(traces, shown, given, cli);
      if (refused.length > 0) return fault(EXIT.cannotRun, ...refused);
    } else {
      for (const warning of [...kubelets.map(runsStill), ...suspects(traces)])
        cli.terminal.warn(`nodewise: ${warning}`);
      print(shown, given, cli);
      return ok(plan.value.stops.length === 0 ? EXIT.ok : EXIT.negative);
    }
    return await executePlan({ ...shown, runtime: runtime.value, read }, given, cli);
  } finally {
    runtime.value.close();
  }
}

const runsStill = ({ pid, name }: KubeletProcess): string =>
  `process ${pid} (${name}) runs pods on this runtime, and starts again what is stopped: stop it for good first (as systemctl disable --now kubelet does)`;

/** Warns about a kubelet whose runtime is unknown: it may be this one. */
function suspects({ processes, listeners }: KubeletTraces): readonly string[] {
  const whatToDo =
    "which may run pods on this runtime: stop it for good first, or give --kubelet-elsewhere if it uses another";
  const unknown = processes.filter(({ uses }) => uses === "unknown");
  return [
    ...unknown.map(
      ({ pid, name }) => `process ${pid} (${name}) is a kubelet whose runtime cannot be determined, ${whatToDo}`,
    ),
    ...listeners.map(({ what, holder }) => {
      const who = holder === null ? "a process that cannot be seen" : `process ${holder.pid} (${holder.name})`;
      return `${what}, which is a kubelet's, is in use by ${who}, ${whatToDo}`;
    }),
  ];
}

/** Why nothing may be stopped now; empty if it may. */
export async function refusalOf(
  traces: KubeletTraces,
  { config, plan, kubelets }: Omit<Shown, "isDryRun">,
  given: Pick<TakeoverFlags, "withoutDaemon" | "kubeletElsewhere">,
  cli: Pick<Cli, "env">,
): Promise<readonly string[]> {
  const maybe = given.kubeletElsewhere === true ? [] : suspects(traces);
  const isAlone = plan.stops.length > 0 && given.withoutDaemon !== true && !(await hasDaemon(config, cli));
  return [
    ...kubelets.map(runsStill),
    ...maybe,
    ...(isAlone
      ? [
          `no Nodewise daemon runs pods here (cgroup root ${config.cgroupRoot}), so nothing would start these again: start it first (as systemctl start nodewise-actuator does), which waits with the pods until then, or give --without-daemon`,
        ]
      : []),
  ];
}

/** Whether a daemon runs this node's pods: by its locks on this machine, or its response at the settings' address. */
async function hasDaemon(
  { cgroupRoot, nodeName, statusListen = DEFAULT_STATUS_LISTEN }: ActuatorConfig,
  cli: Pick<Cli, "env">,
) {
  const bootId = machineFiles("/").text("/proc/sys/kernel/random/boot_id") ?? "";
  if (podsDaemon(cgroupRoot, bootId) !== null) return true;
  const listen = parseListen(statusListen);
  if (!listen.ok || listen.value === null) return false;
  const { host, port } = listen.value;
  const here = { "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host;
  const read = statusSource({ statusUrl: `http://${hostText(here)}:${port}` }, cli);
  const seen = read.ok ? await read.value() : read;
  return seen.ok && seen.value.status.runsPods !== false && seen.value.status.nodeName === nodeName;
}

interface Shown {
  readonly config: ActuatorConfig;
  readonly plan: TakeoverPlan;
  /** The kubelets that use the runtime. */
  readonly kubelets: readonly KubeletProcess[];
  readonly isDryRun: boolean;
}
interface TakeoverRun extends Shown {
  readonly runtime: PodRuntime;
  readonly read: () => Promise<PodsToRun | null>;
}

/** Reads pods, and reports each problem of a source once. */
function podsReader(config: ActuatorConfig, { terminal }: Cli): TakeoverRun["read"] {
  const source = podsSource(config);
  const decode = desiredPodsReader(config.nodeName, profileOf(config.kubeletVersion));
  const warned = new Set<string>();
  return async () => {
    const read = await source();
    for (const { message } of read.problems) {
      if (!warned.has(message)) terminal.warn(`nodewise: pods: ${message}`);
      warned.add(message);
    }
    return decode(read);
  };
}

const notToRun = (name: string, { pods }: PodsToRun): string =>
  `no pod \`${name}\` is to run here; there are ${[...pods.values()].map(fullName).join(", ") || "none at all"}`;

async function planOf(
  runtime: PodRuntime,
  { cgroupRoot }: ActuatorConfig,
  podsToRun: PodsToRun,
  names: readonly string[],
): Promise<Result<TakeoverPlan, Fault>> {
  const held = await runtime.pods();
  if (!held.ok) return fault(EXIT.cannotRun, `${held.error.call}: ${held.error.message}`);
  return ok(
    takeoverPlan(foreignSandboxes(held.value, cgroupRoot), podsToRun, names.length === 0 ? null : new Set(names)),
  );
}

function print({ config, plan, kubelets, isDryRun }: Shown, { output }: TakeoverFlags, { terminal }: Cli): void {
  if (output === "table") printText(terminal, planText(config, plan, isDryRun, terminal));
  else printData(terminal, planData(config, plan, { kubelets, isDryRun, ends: [], cameBack: null }), output);
}

async function executePlan({ runtime, read, ...shown }: TakeoverRun, given: TakeoverFlags, cli: Cli): Promise<Outcome> {
  const { terminal } = cli;
  const isTable = given.output === "table";
  const { config, plan } = shown;
  if (isTable) print(shown, given, cli);
  const stopping = new AbortController();
  void stopSignal().then(() => stopping.abort());
  const { ends, cameBack } = await takeOver(
    {
      runtime,
      clock: systemClock,
      profile: profileOf(config.kubeletVersion),
      owner: config.cgroupRoot,
      hostIPs: hostAddresses(),
      podsToRun: read,
      onEvent: ({ type, reason, message, pod }) =>
        type === "Warning" && terminal.warn(`nodewise: ${fullName(pod)}: ${reason}: ${message}`),
      onEnd: (end) => isTable && printText(terminal, endLine(end, terminal)),
    },
    plan.stops,
    stopping.signal,
  );
  if (!isTable) printData(terminal, planData(config, plan, { ...shown, ends, cameBack }), given.output as "json");
  if (cameBack !== null) return fault(EXIT.cannotRun, cameBack);
  if (stopping.signal.aborted) return ok(EXIT.interrupted);
  if (ends.some(({ outcome }) => outcome === "failed")) return ok(EXIT.failed);
  return ok(ends.every(({ outcome }) => outcome === "stopped") ? EXIT.ok : EXIT.negative);
}

/** Flags under commander's names. */
export interface TakeoverFlags extends Readonly<Record<string, unknown>> {
  readonly dryRun?: boolean;
  readonly stop?: boolean;
  /** Also if no daemon is running that starts the pods afterwards. */
  readonly withoutDaemon?: boolean;
  /** Also if the machine has a kubelet whose runtime is unknown. */
  readonly kubeletElsewhere?: boolean;
  readonly settings?: string;
  readonly output: Form;
}
