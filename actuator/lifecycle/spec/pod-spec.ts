import { err, ok, type Result } from "../../../api/base/result.ts";
import { exactValue, isNegative } from "../../../api/model/amount.ts";
import { SYSTEM_PRIORITY_CLASSES } from "../../../api/model/pod.ts";
import type {
  DnsConfig,
  HostPathType,
  PodContainer,
  PodSpec,
  PodVolume,
  RunnablePod,
  SpecFault,
  TextMap,
} from "../pod.ts";
import { checkHostPorts, containerOf } from "./container.ts";
import { FaultList, FieldValue, type PodVersion, type Served, shown } from "./field-value.ts";
import { checkNoBacksteps, dnsLabel, dnsSearch, dnsSubdomain, ipAddress, labelValue, qualifiedName } from "./names.ts";
import { checkClaims, checkPodResources, quantityAt } from "./resources.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";
import { checkAppArmor, podSecurityOf } from "./security.ts";

const HOST_PATH_TYPES = [
  "",
  "BlockDevice",
  "CharDevice",
  "Directory",
  "DirectoryOrCreate",
  "File",
  "FileOrCreate",
  "Socket",
] as const satisfies readonly HostPathType[];
const TOKEN_VOLUME = /^kube-api-access-/;

/** kubernetes 1.36: ValidateVolumes, SetDefaults_Volume. */
function volumesOf(list: FieldValue): readonly PodVolume[] {
  const names = new Set<string>();
  return list.items().flatMap((at) => {
    const volume = volumeOf(at);
    const name = at.field("name");
    if (name.isEmpty) name.required();
    else name.invalids(dnsLabel(name.text()));
    if (names.has(name.text())) name.duplicate();
    names.add(name.text());
    return volume === null ? [] : [volume];
  });
}

function volumeOf(at: FieldValue): PodVolume | null {
  if (isToken(at)) {
    at.field("projected").fault(
      "a service account's token, which an API server put in: leave out this volume and its mounts; " +
        "`automountServiceAccountToken: false` in the pod keeps it out",
    );
    return null;
  }
  if (!checkFields(at, RULES.Volume)) return null;
  const name = at.field("name").text();
  const sources = at.keys.filter((key) => key !== "name" && !at.field(key).isAbsent);
  for (const source of sources.slice(1)) at.field(source).fault("Forbidden: may not specify more than 1 volume type");
  const hostPath = at.field("hostPath");
  const emptyDir = at.field("emptyDir");
  const ofEmptyDir = emptyDir.isAbsent ? null : emptyDirOf(emptyDir);
  if (!hostPath.isAbsent) return { name, hostPath: hostPathOf(hostPath) };
  if (ofEmptyDir !== null) return { name, emptyDir: ofEmptyDir };
  return sources.length > 0 ? null : { name, emptyDir: { medium: "", sizeLimitBytes: null } };
}
const isToken = (at: FieldValue): boolean =>
  at.keys.length === 2 && !at.field("projected").isAbsent && TOKEN_VOLUME.test(String(at.field("name").value));

function hostPathOf(at: FieldValue): { readonly path: string; readonly type: HostPathType } {
  checkFields(at, RULES.HostPathVolumeSource);
  const path = at.field("path");
  if (path.isEmpty) path.required();
  else checkNoBacksteps(path);
  // A relative one would be below whatever directory the daemon was started in.
  if (!path.isEmpty && !path.text().startsWith("/")) path.invalid("must be an absolute path");
  return { path: path.text(), type: at.field("type").choice(HOST_PATH_TYPES, "") };
}

function emptyDirOf(at: FieldValue): { readonly medium: "" | "Memory"; readonly sizeLimitBytes: number | null } {
  checkFields(at, RULES.EmptyDirVolumeSource);
  const medium = at.field("medium");
  const sizeLimit = at.field("sizeLimit");
  if (medium.text().startsWith("HugePages")) {
    medium.fault("huge pages are not mounted by this daemon: remove it, or set it to Memory");
    return { medium: "", sizeLimitBytes: null };
  }
  const size = sizeLimit.isAbsent ? null : quantityAt(sizeLimit);
  if (size !== null && isNegative(size.amount)) {
    sizeLimit.fault("Forbidden: SizeLimit field must be a valid resource quantity");
  }
  return {
    medium: medium.choice(["Memory"], ""),
    sizeLimitBytes: size === null ? null : Number(exactValue(size.amount)),
  };
}

const MAX_SERVERS = 3;
const MAX_SEARCHES = 32;
const SEARCH_CHARACTERS = 2048;

/** kubernetes 1.36: validatePodDNSConfig. */
function dnsOf(spec: FieldValue): Pick<PodSpec, "dnsPolicy" | "dnsConfig"> {
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

function configOf(at: FieldValue): DnsConfig {
  checkFields(at, RULES.PodDNSConfig);
  const servers = at.field("nameservers");
  const searches = at.field("searches");
  const nameservers = servers.texts();
  const domains = searches.texts();
  if (nameservers.length > MAX_SERVERS) servers.invalid(`must not have more than ${MAX_SERVERS} nameservers`);
  for (const server of servers.items()) server.invalids(ipAddress(server.text()));
  if (domains.length > MAX_SEARCHES) searches.invalid(`must not have more than ${MAX_SEARCHES} search paths`);
  if (domains.join(" ").length > SEARCH_CHARACTERS) {
    searches.invalid(`must not have more than ${SEARCH_CHARACTERS} characters (including spaces) in the search list`);
  }
  for (const search of searches.items()) search.invalids(dnsSearch(search.text()));
  return { nameservers, searches: domains, options: at.field("options").items().map(optionOf) };
}
function optionOf(at: FieldValue): DnsConfig["options"][number] {
  checkFields(at, RULES.PodDNSConfigOption);
  const value = at.field("value");
  if (at.field("name").isEmpty) at.required("must not be empty");
  return { name: at.field("name").text(), value: value.isAbsent ? null : value.text() };
}

/** kubernetes 1.36: ValidateHostAliases. */
function hostAliasesOf(list: FieldValue): PodSpec["hostAliases"] {
  return list.items().map((at) => {
    checkFields(at, RULES.HostAlias);
    const ip = at.field("ip");
    const hostnames = at.field("hostnames");
    ip.invalids(ipAddress(ip.text()));
    for (const name of hostnames.items()) name.invalids(dnsSubdomain(name.text()));
    return { ip: ip.text(), hostnames: hostnames.texts() };
  });
}

const MAX_INT32 = 2_147_483_647;

/**
 * A pod's priority; null: none. `isManifest`: no API server has resolved its class, so the two built-in classes
 * get their values here, and any other class needs the number beside it. kubernetes 1.36: priority admission,
 * computePodPriority.
 */
function priorityOf(spec: FieldValue, isManifest: boolean): number | null {
  const at = spec.field("priority");
  const priority = at.between(-MAX_INT32 - 1, MAX_INT32);
  const named = spec.field("priorityClassName");
  const name = named.text();
  if (!isManifest || name === "") return priority;
  const ofClass = SYSTEM_PRIORITY_CLASSES.get(name);
  if (ofClass === undefined) {
    if (at.isAbsent) {
      const known = [...SYSTEM_PRIORITY_CLASSES.keys()].join(" and ");
      named.fault(
        `${shown(name)} needs the API server, only ${known} are known here: write the class's value in \`priority\``,
      );
    }
    return priority;
  }
  if (priority !== null && priority !== ofClass)
    at.invalid(`contradicts \`priorityClassName\` ${name}, which is ${ofClass}: remove it`);
  return at.isAbsent ? ofClass : priority;
}

const MAX_SECONDS = 2_147_483_647;
const DEFAULT_GRACE = 30;

/** kubernetes 1.36: ValidatePodSpec, with what SetDefaults_Pod and SetDefaults_PodSpec fill in. */
function podSpecOf(spec: FieldValue, annotations: TextMap): PodSpec {
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
  checkClaims(spec);
  return {
    containers,
    initContainers,
    volumes,
    restartPolicy: spec.field("restartPolicy").choice(["Always", "Never", "OnFailure"], "Always"),
    terminationGracePeriodSeconds: grace ?? DEFAULT_GRACE,
    activeDeadlineSeconds: spec.field("activeDeadlineSeconds").between(1, MAX_SECONDS),
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
function graceOf(at: FieldValue): number | null {
  const seconds = at.isAbsent ? DEFAULT_GRACE : at.whole();
  if (seconds === null || seconds >= 0) return seconds;
  at.invalid("must be greater than or equal to 0");
  return null;
}

function accountOf(spec: FieldValue): string {
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

function labelAt(at: FieldValue): string | null {
  if (at.isEmpty) return null;
  at.invalids(dnsLabel(at.text()));
  return at.text();
}

function hostOf(
  spec: FieldValue,
  hostNetwork: boolean,
): Pick<PodSpec, "hostNetwork" | "hostPID" | "hostIPC" | "shareProcessNamespace"> {
  const hostPID = spec.field("hostPID").flag() ?? false;
  const share = spec.field("shareProcessNamespace");
  const shareProcessNamespace = share.flag() ?? false;
  if (hostPID && shareProcessNamespace) share.invalid("ShareProcessNamespace and HostPID cannot both be enabled");
  return { hostNetwork, hostPID, hostIPC: spec.field("hostIPC").flag() ?? false, shareProcessNamespace };
}

/** Checks across containers: names are unique in the pod, ports on the host. */
function checkTogether(spec: FieldValue, containers: readonly PodContainer[], init: readonly PodContainer[]): void {
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

/**
 * Decodes a v1.Pod for this daemon, from a manifest or as `kubectl get -o json` and a kubelet's /pods print it, with
 * an API server's defaults. Errors: all faults with their places, in the order of fields: unknown fields of v1, fields
 * that this daemon does not support, and what an API server would refuse, in its words. `of`: the simulated kubelet.
 */
export function runnablePod(
  object: unknown,
  of: PodVersion = null,
  serves: Served = { draDrivers: false },
): Result<RunnablePod, readonly SpecFault[]> {
  const faults = new FaultList(of, serves);
  const pod = new FieldValue(object, "", faults);
  if (!checkFields(pod, RULES.Pod)) return err(faults.all);
  checkKind(pod);
  const metadata = pod.field("metadata");
  const identity = identityOf(metadata);
  const spec = podSpecOf(pod.field("spec"), identity.annotations);
  const deletion = deletionOf(metadata, spec.terminationGracePeriodSeconds);
  const names = [...spec.containers, ...spec.initContainers].map(({ name }) => name);
  checkAppArmor(metadata.field("annotations"), new Set(names));
  if (faults.all.length > 0) return err(faults.all);
  return ok({ ...identity, deletion, spec, object: withPriority(pod.value as RunnablePod["object"], spec.priority) });
}

/** The pod with its numeric priority, as an API server stores it, since decisions read the number. */
function withPriority(object: RunnablePod["object"], priority: number | null): RunnablePod["object"] {
  const spec = object["spec"] as { readonly priority?: unknown };
  return priority === null || spec.priority === priority ? object : { ...object, spec: { ...spec, priority } };
}

/** A kubelet's /pods leaves both out of its items. */
function checkKind(pod: FieldValue): void {
  for (const [name, value] of [
    ["apiVersion", "v1"],
    ["kind", "Pod"],
  ] as const) {
    const at = pod.field(name);
    if (!at.isEmpty && at.value !== value) at.invalid(`must be ${value}`);
  }
}

const CONFIG_SOURCE = "kubernetes.io/config.source";
const CONFIG_HASH = "kubernetes.io/config.hash";
const CONFIG_MIRROR = "kubernetes.io/config.mirror";
const SECCOMP = /^(?:container\.)?seccomp\.security\.alpha\.kubernetes\.io\//;
const ANNOTATIONS_BYTES = 256 * 1024;
/** The form of a uid, which names directories and cgroups. */
const UID = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;

type Identity = Pick<RunnablePod, "namespace" | "name" | "uid" | "labels" | "annotations" | "isStatic">;

/**
 * Whether the pod is from a manifest: those have a hash, and no API server's defaults. kubelet 1.36:
 * config.applyDefaults.
 */
const isOfManifest = (annotations: TextMap): boolean => annotations[CONFIG_HASH] !== undefined;

/** The pod's identity. kubernetes 1.36: ValidateObjectMeta; a node needs the uid beyond that. */
function identityOf(metadata: FieldValue): Identity {
  checkFields(metadata, RULES.ObjectMeta);
  const name = metadata.field("name");
  const namespace = metadata.field("namespace");
  const uid = metadata.field("uid");
  checkName(name, dnsSubdomain);
  checkName(namespace, dnsLabel);
  if (uid.text() === "" && uid.isEmpty) uid.required("it names the pod's directories and cgroup");
  else if (!UID.test(uid.text())) uid.invalid("must be letters, digits, `-` or `.`, at most 253");
  const annotations = annotationsOf(metadata.field("annotations"));
  const source = annotations[CONFIG_SOURCE];
  return {
    namespace: namespace.text(),
    name: name.text(),
    uid: uid.text(),
    labels: labelsOf(metadata.field("labels")),
    annotations,
    isStatic: source !== undefined && source !== "api",
  };
}

/** The requested deletion; null: none. `grace`: the pod's own grace period. */
function deletionOf(metadata: FieldValue, grace: number): RunnablePod["deletion"] {
  const at = metadata.field("deletionTimestamp");
  const seconds = metadata.field("deletionGracePeriodSeconds").whole();
  if (at.isEmpty) return null;
  const atMs = Date.parse(at.text());
  if (!/^\d{4}-\d\d-\d\dT/.test(at.text()) || Number.isNaN(atMs)) {
    at.invalid("must be an RFC 3339 time such as 2026-01-31T12:00:00Z");
    return null;
  }
  return { atMs, graceSeconds: seconds ?? grace };
}

function checkName(at: FieldValue, rule: (name: string) => readonly string[]): void {
  if (at.isEmpty) at.required();
  else if (typeof at.value === "string") at.invalids(rule(at.value));
  else at.text();
}

function labelsOf(labels: FieldValue): TextMap {
  return textMapOf(labels, (key, value) => {
    for (const says of qualifiedName(key)) labels.fault(`Invalid value: ${JSON.stringify(key)}: ${says}`);
    value.invalids(labelValue(value.text()));
  });
}

function annotationsOf(annotations: FieldValue): TextMap {
  let size = 0;
  const map = textMapOf(annotations, (key, value) => {
    size += key.length + value.text().length;
    const says = qualifiedName(key.toLowerCase());
    for (const s of says) annotations.fault(`Invalid value: ${JSON.stringify(key)}: ${s}`);
    if (SECCOMP.test(key)) value.fault("no longer read: remove it, and set `securityContext.seccompProfile`");
    if (key === CONFIG_MIRROR) {
      value.fault("the API server's image of a static pod: leave it out, and give the manifest of the static pod");
    }
  });
  if (size > ANNOTATIONS_BYTES) annotations.fault(`Too long: may not be more than ${ANNOTATIONS_BYTES} bytes`);
  return map;
}

function textMapOf(at: FieldValue, check: (key: string, value: FieldValue) => void): TextMap {
  if (at.isAbsent || !at.isObject()) return {};
  return Object.fromEntries(
    at.keys.map((key) => {
      const value = at.field(key);
      check(key, value);
      return [key, value.text()];
    }),
  );
}
