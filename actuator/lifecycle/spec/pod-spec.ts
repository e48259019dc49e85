import type { PodContainer, PodSpec, TextMap } from "../pod.ts";
import type { At } from "./at.ts";
import { containerOf } from "./container.ts";
import { dnsOf, hostAliasesOf } from "./dns.ts";
import { isOfManifest } from "./metadata.ts";
import { dnsLabel, dnsSubdomain } from "./names.ts";
import { checkHostPorts } from "./ports.ts";
import { priorityOf } from "./priority.ts";
import { checkPodResources } from "./resources.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";
import { podSecurityOf } from "./security.ts";
import { volumesOf } from "./volumes.ts";

const MOST_SECONDS = 2_147_483_647;
const DEFAULT_GRACE = 30;

/** kubernetes 1.36: ValidatePodSpec, with what SetDefaults_Pod and SetDefaults_PodSpec fill in. */
export function podSpecOf(spec: At, annotations: TextMap): PodSpec {
  checkFields(spec, RULES.PodSpec);
  const volumes = volumesOf(spec.field("volumes"));
  const grace = graceOf(spec.field("terminationGracePeriodSeconds"));
  const hostNetwork = spec.field("hostNetwork").flag() ?? false;
  const names = spec
    .field("volumes")
    .items()
    .map((v) => String(v.field("name").value));
  const around = { volumes: new Set(names), hostNetwork, grace, annotations };
  const list = spec.field("containers");
  if (list.isEmpty) list.required();
  const containers = list.items().map((at) => containerOf(at, false, around));
  const initContainers = spec
    .field("initContainers")
    .items()
    .map((at) => containerOf(at, true, around));
  const host = hostOf(spec, hostNetwork);
  checkTogether(spec, containers, initContainers);
  checkPodResources(spec.field("resources"));
  return {
    containers,
    initContainers,
    volumes,
    restartPolicy: spec.field("restartPolicy").choice(["Always", "Never", "OnFailure"], "Always"),
    terminationGracePeriodSeconds: grace ?? DEFAULT_GRACE,
    activeDeadlineSeconds: spec.field("activeDeadlineSeconds").between(1, MOST_SECONDS),
    nodeName: spec.field("nodeName").text(),
    serviceAccountName: accountOf(spec),
    priority: priorityOf(spec, isOfManifest(annotations)),
    ...host,
    hostname: labelAt(spec.field("hostname")),
    subdomain: labelAt(spec.field("subdomain")),
    setHostnameAsFQDN: spec.field("setHostnameAsFQDN").flag() ?? false,
    hostAliases: hostAliasesOf(spec.field("hostAliases")),
    ...dnsOf(spec),
    securityContext: podSecurityOf(spec.field("securityContext"), host),
  };
}

/** Less than nothing is a second to a kubelet, and refused by the API server. */
function graceOf(at: At): number | null {
  const seconds = at.isAbsent ? DEFAULT_GRACE : at.whole();
  if (seconds === null || seconds >= 0) return seconds;
  at.invalid("must be greater than or equal to 0");
  return null;
}

function accountOf(spec: At): string {
  const name = spec.field("serviceAccountName");
  const older = spec.field("serviceAccount");
  const account = name.isEmpty ? older : name;
  if (account.isEmpty) return "";
  account.invalids(dnsSubdomain(account.text()));
  const isName = account.text() === "default" || spec.field("automountServiceAccountToken").value === false;
  if (!isName)
    account.fault(
      "accounts and their tokens need the API server: remove it, or set `automountServiceAccountToken: false` where it is only a name",
    );
  return account.text();
}

function labelAt(at: At): string | null {
  if (at.isEmpty) return null;
  at.invalids(dnsLabel(at.text()));
  return at.text();
}

function hostOf(
  spec: At,
  hostNetwork: boolean,
): Pick<PodSpec, "hostNetwork" | "hostPID" | "hostIPC" | "shareProcessNamespace"> {
  const hostPID = spec.field("hostPID").flag() ?? false;
  const share = spec.field("shareProcessNamespace");
  const shareProcessNamespace = share.flag() ?? false;
  if (hostPID && shareProcessNamespace) share.invalid("ShareProcessNamespace and HostPID cannot both be enabled");
  return { hostNetwork, hostPID, hostIPC: spec.field("hostIPC").flag() ?? false, shareProcessNamespace };
}

/** Names are the pod's own, ports the host's. */
function checkTogether(spec: At, containers: readonly PodContainer[], init: readonly PodContainer[]): void {
  const placed = (list: string, of: readonly PodContainer[]) =>
    spec
      .field(list)
      .items()
      .map((at, i) => ({ at, name: of[i]?.name ?? "", ports: of[i]?.ports ?? [] }));
  const regular = placed("containers", containers);
  const before = placed("initContainers", init);
  const names = new Set<string>();
  for (const { at, name } of [...regular, ...before]) {
    if (name !== "" && names.has(name)) at.field("name").duplicate();
    names.add(name);
  }
  checkHostPorts(regular);
  for (const one of before) checkHostPorts([one]);
}
