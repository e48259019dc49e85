import type { SystemFacts } from "./facts.ts";
import type { MachineFiles } from "./files.ts";

/** uname's machine -> GOARCH, which Kubernetes uses. */
const GOARCH: Readonly<Record<string, string>> = {
  x86_64: "amd64",
  aarch64: "arm64",
  armv7l: "arm",
  i686: "386",
  loongarch64: "loong64",
};
/** Node's process.arch where it differs from GOARCH. */
const NODE_ARCH: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386", ppc64: "ppc64le" };

/** What `node.status.nodeInfo` tells of the machine. */
export function readSystem(files: MachineFiles): SystemFacts {
  const machineID = files.optionalText("/etc/machine-id") || files.text("/var/lib/dbus/machine-id");
  return {
    hostname: files.text("/proc/sys/kernel/hostname"),
    architecture: readArchitecture(files),
    kernelVersion: files.text("/proc/sys/kernel/osrelease"),
    osImage: readOsImage(files),
    machineID,
    systemUUID: readSystemUUID(files) ?? machineID,
    bootID: files.text("/proc/sys/kernel/random/boot_id"),
    startTime: readStartTime(files),
  };
}

/** /proc/sys/kernel/arch is there since Linux 6.1; before, what this program was built for. */
function readArchitecture(files: MachineFiles): string {
  const machine = files.optionalText("/proc/sys/kernel/arch");
  if (machine !== undefined) return GOARCH[machine] ?? machine;
  return NODE_ARCH[process.arch] ?? process.arch;
}

/** os-release(5): /etc before /usr/lib; the kubelet says Linux where PRETTY_NAME is absent. */
function readOsImage(files: MachineFiles): string | undefined {
  const text = files.optionalText("/etc/os-release") ?? files.text("/usr/lib/os-release");
  if (text === undefined) return undefined;
  const value = /^PRETTY_NAME=(.*)$/m.exec(text)?.[1]?.trim();
  return value === undefined ? "Linux" : value.replace(/^(["'])(.*)\1$/, "$2");
}

/** The firmware's id, which root alone may read; virtual machines often have none (cAdvisor: GetSystemUUID). */
function readSystemUUID(files: MachineFiles): string | undefined {
  const paths = ["/sys/class/dmi/id/product_uuid", "/proc/device-tree/system-id", "/proc/device-tree/vm,uuid"];
  for (const path of paths) {
    const id = files.optionalText(path)?.replaceAll("\0", "");
    if (id) return id;
  }
  return undefined;
}

function readStartTime(files: MachineFiles): string | undefined {
  const seconds = /^btime (\d{1,11})$/m.exec(files.text("/proc/stat") ?? "")?.[1];
  return seconds === undefined ? undefined : secondsText(new Date(Number(seconds) * 1000));
}

/** RFC 3339 to the second, as metav1.Time prints. */
export const secondsText = (time: Date): string => time.toISOString().replace(/\.\d{3}Z$/, "Z");
