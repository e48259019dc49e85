import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { TIMEOUTS } from "../containerd/daemon.ts";
import { imageArchive } from "../containerd/image-archive.ts";
import { IMAGE } from "../pods/manifest.ts";
import { bundle } from "./bundle.ts";
import { projectFiles } from "./project.ts";

const deployed = (name: string): Buffer => readFileSync(join(import.meta.dirname, "../../../actuator/deploy", name));
/** Where containerd's Debian package puts its unit. */
const RUNTIME_UNITS = ["/lib/systemd/system/containerd.service", "/usr/lib/systemd/system/containerd.service"];
const ETC_UNITS = "/etc/systemd/system";
/** Emulating compiled code costs more than interpreting; no unit sets this option itself. */
const MANAGER = `[Manager]\nDefaultEnvironment="NODE_OPTIONS=--jitless"\n`;
const RUNTIME = `version = 2
${TIMEOUTS}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${IMAGE}"
`;

/** The files of a machine that runs the daemon as its unit says; a string: the reason why they cannot be made here. */
export async function systemdFiles(): Promise<string | Record<string, Uint8Array | string>> {
  const runtimeUnit = RUNTIME_UNITS.find(existsSync);
  if (runtimeUnit === undefined) return "containerd's package with its unit is not installed (.ci/apt)";
  const image = imageArchive({ name: IMAGE, sizeBytes: 0, base: "tools", command: ["/bin/sleep", "1000000"] });
  return {
    ...(await projectFiles()),
    [`${ETC_UNITS}/nodewise-actuator.service`]: deployed("nodewise-actuator.service"),
    [`${ETC_UNITS}/nodewise-containerd.service`]: deployed("nodewise-containerd.service"),
    "/etc/nodewise/containerd.toml": deployed("containerd.toml"),
    "/etc/nodewise/cni/net.d/10-nodewise.conflist": deployed("10-nodewise.conflist"),
    [`${ETC_UNITS}/containerd.service`]: readFileSync(runtimeUnit),
    "/etc/systemd/system.conf.d/guest.conf": MANAGER,
    "/etc/containerd/config.toml": RUNTIME,
    "/job/image.tar": image.bytes,
    "/job/main.mjs": await bundle("systemd-job.ts"),
  };
}
