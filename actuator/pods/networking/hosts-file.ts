import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { err, ok, type Result } from "../../../api/model/result.ts";
import { goErrorText } from "../../core/go-error.ts";
import type { PodSpec } from "../../lifecycle/pod.ts";

export interface Hosts {
  readonly hostNetwork: boolean;
  readonly ips: readonly string[];
  readonly hostname: string;
  /** Empty: it has none. */
  readonly domain: string;
  readonly aliases: PodSpec["hostAliases"];
}

/** The machine's own, which pods on its network see. */
const ETC_HOSTS = "/etc/hosts";

/**
 * Writes a pod's /etc/hosts, anew each time a container starts. Written in place, since containers that run have the
 * file itself mounted. Error: what the system refused. kubelet 1.36: ensureHostsFile.
 */
export function writeHostsFile(file: string, hosts: Hosts, nodeHosts: string = ETC_HOSTS): Result<null, string> {
  try {
    const text = hosts.hostNetwork ? nodeText(readFileSync(nodeHosts, "utf8"), hosts) : managedText(hosts);
    writeFileSync(file, text, { mode: 0o644 });
    chmodSync(file, 0o644);
    return ok(null);
  } catch (error) {
    return err(goErrorText(error));
  }
}

const nodeText = (node: string, { aliases }: Hosts): string =>
  `# Kubernetes-managed hosts file (host network).\n${node}${aliasText(aliases)}`;

function managedText({ ips, hostname, domain, aliases }: Hosts): string {
  const names = domain === "" ? hostname : `${hostname}.${domain}\t${hostname}`;
  return [
    "# Kubernetes-managed hosts file.\n",
    "127.0.0.1\tlocalhost\n",
    "::1\tlocalhost ip6-localhost ip6-loopback\n",
    "fe00::0\tip6-localnet\n",
    "fe00::0\tip6-mcastprefix\n",
    "fe00::1\tip6-allnodes\n",
    "fe00::2\tip6-allrouters\n",
    ...ips.map((ip) => `${ip}\t${names}\n`),
    aliasText(aliases),
  ].join("");
}

const aliasText = (aliases: Hosts["aliases"]): string =>
  aliases.length === 0
    ? ""
    : `\n# Entries added by HostAliases.\n${aliases.map(({ ip, hostnames }) => `${ip}\t${hostnames.join("\t")}\n`).join("")}`;
