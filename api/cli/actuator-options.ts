import { type Command, Option } from "commander";

/** Settings of the actuator that other commands on a node take as well, in groups. */

/** Adds the options for where device plugins and drivers register. */
export const withPluginDirectories = (command: Command): Command =>
  command
    .option(
      "--device-plugins-directory <dir>",
      "directory of kubelet.sock, at which device plugins register (default: /var/lib/kubelet/device-plugins)",
    )
    .option(
      "--plugins-registry-directory <dir>",
      "directory of the plugins' sockets (default: /var/lib/kubelet/plugins_registry)",
    );

/** Adds the options for where the runtime writes the logs of containers. */
export const withLogDirectories = (command: Command): Command =>
  command
    .option("--pod-logs-directory <dir>", "default: /var/log/pods")
    .option("--container-logs-directory <dir>", "default: /var/log/containers");

/** Adds the kubelet's flags for the dead containers to keep. */
export const withDeadContainerLimits = (command: Command): Command =>
  command
    .option(
      "--minimum-container-ttl-duration <duration>",
      "the kubelet's flag of that name: dead containers younger than this are kept",
    )
    .addOption(
      new Option(
        "--maximum-dead-containers-per-container <n>",
        "the kubelet's flag of that name: dead containers to keep of each container",
      ).argParser(Number),
    )
    .addOption(
      new Option(
        "--maximum-dead-containers <n>",
        "the kubelet's flag of that name: dead containers to keep on the node",
      ).argParser(Number),
    );

/** Adds the options of a command that decides once for this node, by an API or locally. */
export const withDecidingApi = (command: Command): Command =>
  command
    .option("--api <url>", "the policy API that decides and keeps the history; absent: decided locally")
    .option("--api-token-file <file>", "file with the token for --api")
    .option("--node-name <name>", "default: the host's name");
