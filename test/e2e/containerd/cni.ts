import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { must } from "./pods.ts";
import type { Containerd } from "./start.ts";

const READY_MS = 60_000;

/**
 * Configures a network plugin that gives every sandbox these addresses and does nothing else. Resolves when containerd
 * has loaded the configuration.
 */
export async function giveAddresses(containerd: Containerd, v4: string, v6: string): Promise<void> {
  const { bin, conf } = containerd.cni;
  for (const dir of [bin, conf]) mkdirSync(dir, { recursive: true });
  const ips = [`${v4}/24`, `${v6}/64`].map((address) => ({ address, interface: 0 }));
  const result = { cniVersion: "1.0.0", interfaces: [{ name: "eth0", sandbox: "NETNS" }], ips };
  const versions = { cniVersion: "1.0.0", supportedVersions: ["0.3.1", "0.4.0", "1.0.0"] };
  const script = `#!/bin/sh
case "$CNI_COMMAND" in
VERSION) echo '${JSON.stringify(versions)}' ;;
ADD) echo '${JSON.stringify(result)}' | /bin/busybox sed -e "s|NETNS|$CNI_NETNS|" -e "s|eth0|$CNI_IFNAME|" ;;
esac
`;
  for (const plugin of ["loopback", "addresses"]) writeFileSync(join(bin, plugin), script, { mode: 0o755 });
  const network = { cniVersion: "1.0.0", name: "test", plugins: [{ type: "addresses" }] };
  writeFileSync(join(conf, "10-test.conflist"), JSON.stringify(network));
  for (const deadline = Date.now() + READY_MS; ; await sleep(50)) {
    const { status } = await must(containerd.connection.call("Status", { verbose: false }));
    const network = status?.conditions.find(({ type }) => type === "NetworkReady");
    if (network?.status === true) return;
    if (Date.now() > deadline) throw new Error(`the network does not get ready: ${network?.message}`);
  }
}
