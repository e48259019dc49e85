import { join } from "node:path";
import { clientOf } from "../../../actuator/client-of.ts";
import { readConfiguration } from "../../../actuator/configuration-file.ts";
import { SOCKET_NAME } from "../../../actuator/deviceplugin/names.ts";
import type { MachineFacts } from "../../../actuator/machine/facts.ts";
import { observeMachine } from "../../../actuator/machine/observe.ts";
import { systemClock } from "../../../actuator/pods/clock.ts";
import { readDeviceCheckpoint } from "../../../actuator/pods/device-checkpoint.ts";
import type { DeviceKeeper } from "../../../actuator/pods/devices/keeper.ts";
import { openDeviceKeeper } from "../../../actuator/pods/devices/open.ts";
import type { Problem } from "../../../actuator/ports.ts";
import { ok, type Result } from "../../model/result.ts";
import { printable } from "../../text/style.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, fault, type Outcome } from "../exit.ts";
import { printData } from "../output.ts";
import { stopSignal } from "../stop-signal.ts";
import type { Terminal } from "../terminal.ts";
import { type AskedPod, readAskedPod } from "./asked-pod.ts";
import { decideDevices } from "./decide.ts";
import { type ContainerGift, giftsOf } from "./gifts.ts";
import { giftsTable } from "./gifts-table.ts";
import { give } from "./give.ts";
import type { AllocateGiven } from "./given.ts";
import { type DevicePlace, openPlace } from "./place.ts";
import { Waiting } from "./waiting.ts";

/** One allocation. */
export interface Allocating {
  readonly asked: AskedPod;
  readonly place: DevicePlace;
  readonly keeper: DeviceKeeper;
  readonly waiting: Waiting;
  readonly machine: () => MachineFacts;
}

/** `nodewise devices allocate`: gives a pod its devices, and tells what its containers are to be started with. */
export async function allocate(given: AllocateGiven, { terminal, env }: Cli): Promise<Outcome> {
  const stop = new AbortController();
  void stopSignal().then(() => stop.abort());
  const place = await openPlace(given, env);
  if (!place.ok) return place;
  try {
    const asked = await readAskedPod(given.pod, place.value.config.nodeName);
    if (!asked.ok) return asked;
    const former = formerOf(asked.value, place.value);
    if (former !== null) return fault(EXIT.badInput, former);
    const opened = await openHost(place.value, given.wait, terminal);
    if (!opened.ok) return opened;
    try {
      return await allocateWith(asked.value, place.value, opened.value, stop.signal, given, terminal);
    } finally {
      opened.value.close();
    }
  } finally {
    place.value.release();
  }
}

/** Why a pod of this name is given nothing; null: it may be. */
function formerOf({ pod }: AskedPod, { pods }: DevicePlace): string | null {
  const name = `${pod.namespace}/${pod.name}`;
  if (pods.ofDaemon.has(pod.uid))
    return `${name} is run by the daemon of this state directory, which gives it its devices itself when it runs`;
  const other = [...pods.byHand.values()].find(
    (one) => one.namespace === pod.namespace && one.name === pod.name && one.uid !== pod.uid,
  );
  if (other === undefined) return null;
  return `${name} has devices as another pod (uid ${other.uid}, this is ${pod.uid}): \`nodewise devices free ${other.uid}\` first`;
}

async function openHost(
  place: DevicePlace,
  waitSeconds: number,
  terminal: Terminal,
): Promise<Result<DeviceKeeper, Fault>> {
  const { config, files, bootId } = place;
  const opened = await openDeviceKeeper({
    pluginDir: config.devicePluginsDirectory,
    registryDir: config.pluginsRegistryDirectory,
    stateDir: config.stateDir,
    files,
    clock: systemClock,
    bootId,
    waitMs: waitSeconds * 1000,
    onProblem: tellTo(terminal),
  });
  if (opened.ok) return opened;
  const advice =
    "--device-plugins-directory names another; where a kubelet or a daemon runs the pods, it gives the devices";
  return fault(EXIT.cannotRun, opened.error, advice);
}
const tellTo =
  (terminal: Terminal) =>
  ({ from, message }: Problem): void =>
    terminal.warn(`nodewise: ${printable(`${from}: ${message}`)}`);

async function allocateWith(
  asked: AskedPod,
  place: DevicePlace,
  keeper: DeviceKeeper,
  stop: AbortSignal,
  given: AllocateGiven,
  terminal: Terminal,
): Promise<Outcome> {
  const { config, files, pods } = place;
  const configuration = await readConfiguration(config.kubeletConfiguration);
  if (!configuration.ok) return fault(EXIT.badInput, configuration.error.message);
  const client = clientOf({ config, onProblem: tellTo(terminal) }, "outbox-devices.jsonl");
  if (!client.ok) return fault(EXIT.badInput, client.error);
  const waiting = new Waiting(keeper, stop);
  const machine = () => observeMachine({ kubeletDirectory: config.kubeletDir });
  const work: Allocating = { asked, place, keeper, waiting, machine };
  const came = await pluginsCome(work, join(config.devicePluginsDirectory, SOCKET_NAME), terminal);
  if (!came.ok) return came;
  const answer = await decideDevices(work, client.value, configuration.value);
  if (!answer.ok) return answer;
  const done = await give(work, answer.value);
  keeper.look(pods.uids);
  for (const problem of keeper.problems()) tellTo(terminal)(problem);
  if (!done.ok) return done;
  const read = readDeviceCheckpoint(files);
  if (!read.ok) return fault(EXIT.failed, read.error.message);
  const names = asked.containers.map(({ name }) => name);
  const gifts = read.value === undefined ? [] : giftsOf(read.value, asked.pod.uid, names);
  print(asked, config.nodeName, gifts, given, terminal);
  return ok(EXIT.ok);
}

/** Waits until the plugins of all its resources have said what they have. Errors: one did not in time; a stop. */
async function pluginsCome(
  { asked, keeper, waiting }: Allocating,
  socketPath: string,
  terminal: Terminal,
): Promise<Result<null, Fault>> {
  let told = "";
  for (;;) {
    const version = keeper.version;
    const why = keeper.whyWaits(asked.pod);
    if (why === null) return ok(null);
    if (why.isTold) {
      const advice = `is it running, and does it register at ${socketPath}? --wait gives it longer`;
      return fault(EXIT.negative, `${printable(why.message)}: ${advice}`);
    }
    if (why.message !== told) terminal.warn(`nodewise: ${printable(why.message)} (at ${socketPath})`);
    told = why.message;
    await waiting.change(version);
    if (waiting.isStopped) return waiting.stopped();
  }
}

function print(
  { pod }: AskedPod,
  node: string,
  containers: readonly ContainerGift[],
  { output }: AllocateGiven,
  terminal: Terminal,
): void {
  const { namespace, name, uid } = pod;
  if (output !== "table") {
    printData(terminal, { node, pod: { namespace, name, uid }, containers }, output);
    return;
  }
  terminal.write(terminal.paint("green", `allocated: ${printable(`${namespace}/${name}`)}\n\n`));
  terminal.write(giftsTable(containers, terminal));
}
