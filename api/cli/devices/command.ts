import { type Command, Option } from "commander";
import { withDecidingApi, withPluginDirectories } from "../actuator-options.ts";
import {
  type Cli,
  examples,
  finish,
  limitOption,
  outputOption,
  sourceOptions,
  watchOption,
  wholeNumber,
} from "../cli.ts";
import type { AllocateFlags, DeviceHistoryFlags, DevicesFlags, FreeFlags } from "./container-devices.ts";

const EXIT_CODES = `
Exit codes:
  0  shown
  2  bad usage
  4  the daemon does not answer, or its status cannot be read`;

/** `nodewise devices`: the devices of plugins, which pods have them, and their history; also allocation without a daemon. */
export function addDevices(program: Command, cli: Cli): void {
  const command = program
    .command("devices")
    .summary("Show the node's devices, their plugins and their containers")
    .description(
      "Show the resources of device plugins as the node's daemon sees them, and which container has which device.",
    );
  sourceOptions(command)
    .addOption(watchOption())
    .addOption(outputOption())
    .action((given: DevicesFlags) => finish(cli, async () => (await import("./devices.ts")).devices(given, cli)));
  examples(
    command,
    "nodewise devices",
    "nodewise devices --watch 5",
    "nodewise devices -o json | jq '.devices[].holders[]'",
    "nodewise devices history --limit 20",
    "nodewise devices allocate --pod trainer.yaml",
    "nodewise devices free ml/trainer",
  );
  command.addHelpText("after", EXIT_CODES);
  addHistory(command, cli);
  addAllocate(command, cli);
  addFree(command, cli);
}

function addHistory(devices: Command, cli: Cli): void {
  const command = devices
    .command("history")
    .summary("Show what happened to the node's devices")
    .description("List what happened to a node's devices, newest first: plugins, changes of health, allocations.")
    .option("--state-dir <dir>", "the daemon's (default: the actuator's, $XDG_STATE_HOME/nodewise/actuator)")
    .option("--resource <name>", "only this resource")
    .addOption(limitOption())
    .addOption(outputOption())
    .action((given: DeviceHistoryFlags) =>
      finish(cli, async () => (await import("./history.ts")).deviceHistory(given, cli)),
    );
  examples(
    command,
    "nodewise devices history",
    "nodewise devices history --resource vendor.com/gpu --limit 20 -o json",
  );
}

/** Adds the options for the state directory that a daemon with pods would use. */
const placeOptions = (command: Command): Command =>
  command
    .option(
      "--state-dir <dir>",
      "where allocations are kept (default: the actuator's, $XDG_STATE_HOME/nodewise/actuator)",
    )
    .option("--cgroup-root <path>", "cgroup root of the daemon that must not run meanwhile (default: /nodewise)");

function addAllocate(devices: Command, cli: Cli): void {
  const command = devices
    .command("allocate")
    .summary("Allocate devices to a pod, without a daemon and a container runtime")
    .description(
      "Wait for the device plugins that a pod needs, decide which devices it gets, call Allocate (and PreStartContainer), and print what its containers have to be started with. The same pod gets the same devices again.",
    )
    .requiredOption("--pod <file>", "a manifest, or a v1.Pod as kubectl prints it; - for standard input")
    .addOption(
      new Option("--wait <seconds>", "how long to wait for plugins to register")
        .argParser(wholeNumber(0, 3600))
        .default(60),
    );
  withPluginDirectories(command).option(
    "--kubelet-config <file>",
    "the KubeletConfiguration: the topology manager's policy",
  );
  placeOptions(withDecidingApi(command))
    .addOption(outputOption())
    .action((given: AllocateFlags) => finish(cli, async () => (await import("./allocate.ts")).allocate(given, cli)));
  examples(
    command,
    "nodewise devices allocate --pod trainer.yaml",
    "nodewise devices allocate --pod trainer.yaml --wait 10 -o json | jq '.containers[].devices'",
  );
  command.addHelpText("after", ALLOCATE_CODES);
}
const ALLOCATE_CODES = `
Exit codes:
  0  the pod has its devices
  1  refused: too few devices, a plugin that does not register, or one that does not allocate them
  2  bad usage or bad input
  3  a daemon, a kubelet or another such command allocates devices here
  4  a file or the API failed, or it was stopped; devices that were allocated stay so until they are freed`;

function addFree(devices: Command, cli: Cli): void {
  const command = devices
    .command("free")
    .summary("Free the devices that `allocate` gave to a pod")
    .description("Free the devices of a pod that `nodewise devices allocate` gave to it.")
    .argument("<pod>", "NAMESPACE/NAME, or a uid");
  placeOptions(command)
    .addOption(outputOption())
    .action((pod: string, given: FreeFlags) =>
      finish(cli, async () => (await import("./free.ts")).free(pod, given, cli)),
    );
  examples(command, "nodewise devices free ml/trainer");
}
