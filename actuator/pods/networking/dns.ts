import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { isIPv6 } from "node:net";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { goErrorText } from "../../core/error-text.ts";
import type { DnsConfig, PodSpec, RunnablePod } from "../../lifecycle/pod.ts";

interface Hosts {
  readonly hostNetwork: boolean;
  readonly ips: readonly string[];
  readonly hostname: string;
  /** The cluster domain; empty: none. */
  readonly domain: string;
  readonly aliases: PodSpec["hostAliases"];
}

/** The machine's hosts file, for pods on the host network. */
const ETC_HOSTS = "/etc/hosts";

/**
 * Writes a pod's /etc/hosts each time a container starts. It is overwritten in place, since running containers have the
 * file itself mounted. Error: the system's error. kubelet 1.36: ensureHostsFile.
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

/** A pod's /etc/resolv.conf, in CRI's form. */
interface ResolvConf {
  readonly servers: readonly string[];
  readonly searches: readonly string[];
  /** `ndots:5` */
  readonly options: readonly string[];
}

/**
 * Parses a resolv.conf(5): name servers add up, the last search list counts, and of options with the same name the last.
 * Errors: lines that lack a value. kubelet 1.36: parseResolvConf.
 */
export function parseResolvConf(text: string): { readonly conf: ResolvConf; readonly errors: readonly string[] } {
  const servers: string[] = [];
  let searches: readonly string[] = [];
  const options = new Map<string, string>();
  const errors: string[] = [];
  for (const line of text.split("\n")) {
    const [word, ...values] = line.trim().split(/\s+/);
    if (word === "nameserver") {
      if (values[0] === undefined) errors.push("nameserver list is empty ");
      else servers.push(values[0]);
    }
    if (word === "search") searches = values.filter((v) => v !== ".").map((v) => v.replace(/\.$/, ""));
    if (word === "options") for (const option of values) options.set(option.split(":")[0] as string, option);
  }
  return { conf: { servers, searches, options: [...options.values()] }, errors };
}

/** The node's DNS settings, named as in KubeletConfiguration. */
export interface NodeDns {
  readonly clusterDNS: readonly string[];
  readonly clusterDomain: string;
  /** The content of `resolvConf`; null: `resolvConf` is empty, and pods query the machine itself. */
  readonly host: ResolvConf | null;
  readonly nodeIps: readonly string[];
}
interface DnsEvent {
  readonly reason: "MissingClusterDNS" | "DNSConfigForming";
  readonly message: string;
}
interface PodDns {
  readonly conf: ResolvConf;
  /** Warning events. */
  readonly events: readonly DnsEvent[];
}

// validation.MaxDNS*, and the maximum length of a domain name
const MAX_SERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARACTERS = 2048;
const MAX_NAME = 253;

/** kubelet 1.36: Configurer.GetPodDNS. Options keep the order of their first mention; the kubelet's order is random. */
export function dnsOf(pod: RunnablePod, node: NodeDns): PodDns {
  const { conf, events } = policyOf(pod, node);
  const { dnsConfig } = pod.spec;
  return withinLimits(dnsConfig === null ? conf : merged(conf, dnsConfig), events);
}

function policyOf(pod: RunnablePod, node: NodeDns): PodDns {
  const { dnsPolicy, hostNetwork } = pod.spec;
  if (dnsPolicy === "None") return { conf: EMPTY, events: [] };
  const isCluster = dnsPolicy === "ClusterFirstWithHostNet" || (dnsPolicy === "ClusterFirst" && !hostNetwork);
  if (!isCluster) return { conf: ofHost(node), events: [] };
  if (node.clusterDNS.length === 0) return { conf: ofHost(node), events: [missing(pod)] };
  const searches = (node.host ?? EMPTY).searches;
  return {
    conf: {
      servers: node.clusterDNS,
      searches: clusterSearches(pod.namespace, node.clusterDomain, searches),
      options: ["ndots:5"],
    },
    events: [],
  };
}
const EMPTY: ResolvConf = { servers: [], searches: [], options: [] };

function missing({ namespace, name, uid }: RunnablePod): DnsEvent {
  const fallBack = `kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. Falling back to "Default" policy.`;
  return { reason: "MissingClusterDNS", message: `pod: "${name}_${namespace}(${uid})". ${fallBack}` };
}

function ofHost({ host, nodeIps }: NodeDns): ResolvConf {
  if (host !== null) return host;
  const servers = nodeIps.map((ip) => (isIPv6(ip) ? "::1" : "127.0.0.1"));
  return { servers: servers.length === 0 ? ["127.0.0.1"] : servers, searches: ["."], options: [] };
}

const clusterSearches = (namespace: string, domain: string, host: readonly string[]): readonly string[] =>
  domain === "" ? host : distinct([`${namespace}.svc.${domain}`, `svc.${domain}`, domain, ...host]);

function merged(conf: ResolvConf, { nameservers, searches, options }: DnsConfig): ResolvConf {
  const byName = new Map<string, string>();
  for (const option of conf.options) {
    const at = option.indexOf(":");
    byName.set(at < 0 ? option : option.slice(0, at), at < 0 ? "" : option.slice(at + 1));
  }
  for (const { name, value } of options) byName.set(name, value ?? "");
  return {
    servers: distinct([...conf.servers, ...nameservers]),
    searches: distinct([...conf.searches, ...searches]),
    options: [...byName].map(([name, value]) => (value === "" ? name : `${name}:${value}`)),
  };
}
const distinct = (texts: readonly string[]): readonly string[] => [...new Set(texts)];

function withinLimits(conf: ResolvConf, before: readonly DnsEvent[]): PodDns {
  const events = [...before];
  const forming = (message: string) => events.push({ reason: "DNSConfigForming", message });
  const servers = conf.servers.slice(0, MAX_SERVERS);
  if (servers.length < conf.servers.length)
    forming(
      `Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: ${servers.join(" ")}`,
    );
  const searches = conf.searches.slice(0, MAX_SEARCHES).filter((name) => Buffer.byteLength(name) <= MAX_NAME);
  while (Buffer.byteLength(searches.join(" ")) > MAX_SEARCH_CHARACTERS) searches.pop();
  if (searches.length < conf.searches.length)
    forming(
      `Search Line limits were exceeded, some search paths have been omitted, the applied search line is: ${searches.join(" ")}`,
    );
  return { conf: { servers, searches, options: conf.options }, events };
}
