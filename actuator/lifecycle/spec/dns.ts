import type { DnsConfig, PodSpec } from "../pod.ts";
import type { At } from "./at.ts";
import { ipAddress } from "./ip.ts";
import { dnsSearch, dnsSubdomain } from "./names.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

const MOST_SERVERS = 3;
const MOST_SEARCHES = 32;
const SEARCH_CHARACTERS = 2048;

/** kubernetes 1.36: validatePodDNSConfig. */
export function dnsOf(spec: At): Pick<PodSpec, "dnsPolicy" | "dnsConfig"> {
  const policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"] as const;
  const dnsPolicy = spec.field("dnsPolicy").choice(policies, "ClusterFirst");
  const at = spec.field("dnsConfig");
  if (dnsPolicy === "None") {
    const servers = at.field("nameservers");
    if (at.isAbsent) at.required("must provide `dnsConfig` when `dnsPolicy` is None");
    else if (servers.isEmpty) servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None");
  }
  return { dnsPolicy, dnsConfig: at.isAbsent ? null : configOf(at) };
}

function configOf(at: At): DnsConfig {
  checkFields(at, RULES.PodDNSConfig);
  const servers = at.field("nameservers");
  const searches = at.field("searches");
  const nameservers = servers.texts();
  const domains = searches.texts();
  if (nameservers.length > MOST_SERVERS) servers.invalid(`must not have more than ${MOST_SERVERS} nameservers`);
  for (const server of servers.items()) server.invalids(ipAddress(server.text()));
  if (domains.length > MOST_SEARCHES) searches.invalid(`must not have more than ${MOST_SEARCHES} search paths`);
  if (domains.join(" ").length > SEARCH_CHARACTERS) {
    searches.invalid(`must not have more than ${SEARCH_CHARACTERS} characters (including spaces) in the search list`);
  }
  for (const search of searches.items()) search.invalids(dnsSearch(search.text()));
  return { nameservers, searches: domains, options: at.field("options").items().map(optionOf) };
}
function optionOf(at: At): DnsConfig["options"][number] {
  checkFields(at, RULES.PodDNSConfigOption);
  const value = at.field("value");
  if (at.field("name").isEmpty) at.required("must not be empty");
  return { name: at.field("name").text(), value: value.isAbsent ? null : value.text() };
}

/** kubernetes 1.36: ValidateHostAliases. */
export function hostAliasesOf(list: At): PodSpec["hostAliases"] {
  return list.items().map((at) => {
    checkFields(at, RULES.HostAlias);
    const ip = at.field("ip");
    const hostnames = at.field("hostnames");
    ip.invalids(ipAddress(ip.text()));
    for (const name of hostnames.items()) name.invalids(dnsSubdomain(name.text()));
    return { ip: ip.text(), hostnames: hostnames.texts() };
  });
}
