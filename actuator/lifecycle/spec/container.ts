import type { ProbePort } from "../../../api/model/probe-spec.ts";
import { canonicalText } from "../../../api/model/quantity.ts";
import { fieldPathFault } from "../env.ts";
import type { ContainerPort, EnvVar, LifecycleHandler, PodContainer, TextMap, VolumeMount } from "../pod.ts";
import { type FieldValue, shown } from "./field-value.ts";
import { checkDescending, dnsLabel, envName, portName } from "./names.ts";
import { execOf, httpGetOf, probesOf } from "./probes.ts";
import { checkResources, quantityAt } from "./resources.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";
import { annotatedProfile, containerSecurityOf } from "./security.ts";

const MAX_PORT = 65_535;

/**
 * The container's ports; on the host's network each is also a host port. kubernetes 1.36: validateContainerPorts,
 * defaultHostNetworkPorts.
 */
function portsOf(list: FieldValue, hostNetwork: boolean): readonly ContainerPort[] {
  const names = new Set<string>();
  return list.items().map((at) => {
    checkFields(at, RULES.ContainerPort);
    const name = at.field("name");
    if (!name.isEmpty) {
      const says = portName(name.text());
      name.invalids(says);
      if (says.length === 0 && names.has(name.text())) name.duplicate();
      names.add(name.text());
    }
    const containerPort = portAt(at.field("containerPort"), true);
    const hostPort = portAt(at.field("hostPort"), false);
    if (hostNetwork && hostPort !== 0 && hostPort !== containerPort) {
      at.field("hostPort").invalid("must match `containerPort` when `hostNetwork` is true");
    }
    return {
      name: name.text(),
      containerPort,
      hostPort: hostNetwork ? containerPort : hostPort,
      hostIP: at.field("hostIP").text(),
      protocol: at.field("protocol").choice(["SCTP", "TCP", "UDP"], "TCP"),
    };
  });
}
function portAt(at: FieldValue, isRequired: boolean): number {
  const port = at.whole() ?? 0;
  if (port !== 0) at.between(1, MAX_PORT);
  else if (isRequired && (at.isAbsent || at.value === 0)) at.required();
  return port;
}

/**
 * Checks that each host port is used by one container; init containers run one after another. kubernetes 1.36:
 * AccumulateUniqueHostPorts.
 */
export function checkHostPorts(
  containers: readonly { readonly at: FieldValue; readonly ports: readonly ContainerPort[] }[],
): void {
  const taken = new Set<string>();
  for (const { at, ports } of containers) {
    for (const [i, port] of ports.entries()) {
      if (port.hostPort === 0) continue;
      const key = `${port.protocol}/${port.hostIP}/${port.hostPort}`;
      if (taken.has(key)) at.field("ports").items()[i]?.field("hostPort").duplicate(key);
      taken.add(key);
    }
  }
}

const RESOURCES = ["cpu", "ephemeral-storage", "memory"].flatMap((name) => [`limits.${name}`, `requests.${name}`]);
const HUGE_PAGES = /^(?:limits|requests)\.hugepages-/;
const SIZES = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/** kubernetes 1.36: ValidateEnv. */
function envVarsOf(list: FieldValue): readonly EnvVar[] {
  return list.items().flatMap((at) => {
    checkFields(at, RULES.EnvVar);
    const name = at.field("name");
    if (name.isEmpty) name.required();
    else name.invalids(envName(name.text()));
    const value = at.field("value");
    const from = at.field("valueFrom");
    if (from.isAbsent) return [{ name: name.text(), value: value.text() }];
    return sourceOf(name.text(), from, value);
  });
}

function sourceOf(name: string, from: FieldValue, value: FieldValue): readonly EnvVar[] {
  if (!checkFields(from, RULES.EnvVarSource)) return [];
  const sources = from.keys.filter((key) => !from.field(key).isAbsent);
  if (sources.length === 0) {
    from.fault('Invalid value: "": must specify one of: `fieldRef` or `resourceFieldRef`');
  } else if (!value.isEmpty) {
    from.fault('Invalid value: "": may not be specified when `value` is not empty');
  } else if (sources.length > 1) {
    from.fault('Invalid value: "": may not have more than one field specified at a time');
  }
  const field = from.field("fieldRef");
  const resource = from.field("resourceFieldRef");
  if (!field.isAbsent) return [{ name, fieldPath: fieldPathOf(field) }];
  return resource.isAbsent ? [] : [{ name, ...resourceOf(resource) }];
}

function fieldPathOf(at: FieldValue): string {
  checkFields(at, RULES.ObjectFieldSelector);
  const version = at.field("apiVersion");
  const fieldPath = at.field("fieldPath");
  if (!version.isEmpty && version.text() !== "v1") version.invalid("only v1 is supported");
  const path = fieldPath.text();
  if (fieldPath.isEmpty) fieldPath.required();
  else {
    const fault = fieldPathFault(path);
    if (fault !== null) fieldPath.invalid(fault);
  }
  return path === "spec.host" ? "spec.nodeName" : path;
}

function resourceOf(at: FieldValue): { resource: string; containerName: string; divisor: string } {
  checkFields(at, RULES.ResourceFieldSelector);
  const resource = at.field("resource");
  const name = resource.text();
  const isKnown = RESOURCES.includes(name) || HUGE_PAGES.test(name);
  if (resource.isEmpty) resource.required();
  else if (!isKnown) {
    const supported = RESOURCES.toSorted().map(shown).join(", ");
    resource.fault(`Unsupported value: ${shown(name)}: supported values: ${supported}`);
  }
  const divisor = divisorOf(at.field("divisor"), isKnown ? name : "");
  return { resource: name, containerName: at.field("containerName").text(), divisor };
}

/** The quantity as Go writes it; null: the text is no quantity. An amount whose thousandths exceed int64 is rejected. */
function canonical(at: FieldValue): string | null {
  if (at.value === "1E" || at.value === "1Ei") return at.value;
  const quantity = quantityAt(at);
  return quantity === null ? null : canonicalText(quantity.amount, quantity.format);
}

/** Zero, like nothing, is one. kubernetes 1.36: validateContainerResourceDivisor. */
function divisorOf(at: FieldValue, resource: string): string {
  if (at.isAbsent) return "1";
  const text = canonical(at);
  if (text === null || text === "0") return "1";
  const isCpu = resource.endsWith(".cpu");
  const allowed = isCpu ? ["1m", "1"] : SIZES;
  const [, kind = ""] = resource.split(".");
  if (kind !== "" && !allowed.includes(text)) {
    const what = kind.startsWith("hugepages-") ? "hugepages" : kind === "ephemeral-storage" ? `local ${kind}` : kind;
    const values = isCpu ? "1m and 1" : SIZES.join(", ");
    const says = `only divisor's values ${values} are supported with the ${what.replace("-", " ")} resource`;
    at.fault(`Invalid value: ${shown(resource)}: ${says}`);
  }
  return text;
}

const HOST = "[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?";
const domain = new RegExp(`^(?:${HOST}(?:\\.${HOST})*|\\[[0-9A-Fa-f:]+\\])(?::\\d+)?$`);
const COMPONENT = /^[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*$/;
const TAG = /^\w[\w.-]{0,127}$/;
const DIGEST = /^[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9A-Fa-f]{32,}$/;
/** An image's id, which is no name. */
const ID = /^[0-9a-f]{64}$/;
const MAX_LENGTH = 255;

/**
 * The tag of an image's name: `latest` without tag or digest, empty with only a digest or if it is no valid name.
 * kubernetes 1.36: parsers.ParseImageName.
 */
function tagOf(image: string): string {
  const [name = "", digest, ...more] = image.split("@");
  if (more.length > 0 || (digest !== undefined && !DIGEST.test(digest))) return "";
  const colon = name.indexOf(":", name.lastIndexOf("/") + 1);
  const tag = colon < 0 ? undefined : name.slice(colon + 1);
  if (!isRepository(colon < 0 ? name : name.slice(0, colon)) || (tag !== undefined && !TAG.test(tag))) return "";
  return tag ?? (digest === undefined ? "latest" : "");
}

/** kubernetes 1.36: SetDefaults_Container. */
const pullPolicyOf = (image: string): "Always" | "IfNotPresent" =>
  tagOf(image) === "latest" ? "Always" : "IfNotPresent";

function isRepository(name: string): boolean {
  if (ID.test(name)) return false;
  const parts = name.split("/");
  const first = parts[0] as string;
  const hasDomain = parts.length > 1 && (first === "localhost" || /[.:A-Z]/.test(first));
  const full = hasDomain ? name : `docker.io/${parts.length > 1 ? "" : "library/"}${name}`;
  // The grammar retries a first part that looks like a domain and is none.
  const path = hasDomain && domain.test(first) ? parts.slice(1) : parts;
  return full.length <= MAX_LENGTH && path.every((part) => COMPONENT.test(part));
}

/** The part of a pod that its containers depend on. */
interface PodContext {
  readonly volumes: ReadonlySet<string>;
  readonly hostNetwork: boolean;
  /** The grace period; null: it is invalid. */
  readonly grace: number | null;
  readonly annotations: TextMap;
}
const MESSAGE_PATH = "/dev/termination-log";

/** kubernetes 1.36: validateContainerCommon, validateInitContainers, SetDefaults_Container. */
export function containerOf(at: FieldValue, isInit: boolean, around: PodContext): PodContainer {
  checkFields(at, RULES.Container);
  const name = at.field("name");
  if (name.isEmpty) name.required();
  else name.invalids(dnsLabel(name.text()));
  const image = at.field("image");
  if (image.isEmpty) image.required();
  else if (image.text().trim() !== image.text()) image.invalid("must not have leading or trailing whitespace");
  const ports = portsOf(at.field("ports"), around.hostNetwork);
  const security = containerSecurityOf(at.field("securityContext"));
  const isSidecar = isSidecarAt(at, isInit);
  if (isInit && !isSidecar && !at.field("lifecycle").isAbsent) {
    at.field("lifecycle").fault("Forbidden: may not be set for init containers without restartPolicy=Always");
  }
  checkResources(at.field("resources"));
  return {
    name: name.text(),
    image: image.text(),
    command: at.field("command").texts(),
    args: at.field("args").texts(),
    workingDir: at.field("workingDir").text(),
    ports,
    env: envVarsOf(at.field("env")),
    mounts: mountsOf(at.field("volumeMounts"), around.volumes, security.privileged),
    imagePullPolicy: at
      .field("imagePullPolicy")
      .choice(["Always", "IfNotPresent", "Never"], pullPolicyOf(image.text())),
    terminationMessagePath: messagePathOf(at.field("terminationMessagePath")),
    terminationMessagePolicy: at.field("terminationMessagePolicy").choice(["File", "FallbackToLogsOnError"], "File"),
    ...hooksOf(at.field("lifecycle"), ports, around.grace),
    security: { ...security, appArmor: security.appArmor ?? annotatedProfile(around.annotations, name.text()) },
    stdin: at.field("stdin").flag() ?? false,
    stdinOnce: at.field("stdinOnce").flag() ?? false,
    tty: at.field("tty").flag() ?? false,
    isSidecar,
    probes: probesOf(at, !isInit || isSidecar),
  };
}

function isSidecarAt(at: FieldValue, isInit: boolean): boolean {
  const policy = at.field("restartPolicy");
  if (policy.isAbsent) return false;
  if (isInit && policy.value === "Always") return true;
  policy.fault(
    "a container's own restart policy is done only where `Always` makes an init container a sidecar: remove it, " +
      "and set the pod's `restartPolicy`",
  );
  return false;
}

/** A file is mounted there, which a path out of the container would put elsewhere. */
function messagePathOf(at: FieldValue): string {
  if (at.isEmpty) return MESSAGE_PATH;
  if (!at.text().startsWith("/")) at.invalid("must be an absolute path");
  else if (at.text().split("/").includes("..")) at.invalid("must not contain '..'");
  return at.text();
}

/** `volumes`: the names that there are, of refused ones too. kubernetes 1.36: ValidateVolumeMounts. */
function mountsOf(list: FieldValue, volumes: ReadonlySet<string>, privileged: boolean): readonly VolumeMount[] {
  const places = new Set<string>();
  return list.items().map((at) => {
    checkFields(at, RULES.VolumeMount);
    const name = at.field("name");
    if (name.isEmpty) name.required();
    else if (!volumes.has(name.text())) name.fault(`Not found: ${JSON.stringify(name.text())}`);
    const mountPath = at.field("mountPath");
    checkPlace(mountPath, places);
    const subPath = at.field("subPath");
    const expression = at.field("subPathExpr");
    if (!subPath.isEmpty) checkDescending(subPath);
    if (!expression.isEmpty) {
      if (!subPath.isEmpty) expression.invalid("subPathExpr and subPath are mutually exclusive");
      checkDescending(expression);
    }
    const propagation = at.field("mountPropagation");
    const word = propagation.choice(["Bidirectional", "HostToContainer", "None"], "None");
    if (word === "Bidirectional" && !privileged) {
      propagation.fault("Forbidden: Bidirectional mount propagation is available only to privileged containers");
    }
    return {
      volume: name.text(),
      mountPath: mountPath.text(),
      readOnly: at.field("readOnly").flag() ?? false,
      subPath: expression.isEmpty ? subPath.text() : expression.text(),
      isExpression: !expression.isEmpty,
      propagation: word,
    };
  });
}

/** The API server accepts relative paths; a kubelet prefixes them with `/`, so that two may be the same. */
function checkPlace(at: FieldValue, places: Set<string>): void {
  const path = at.text();
  if (at.isEmpty) at.required();
  else if (path !== "" && !path.startsWith("/")) at.invalid("must be an absolute path");
  else if (path.split("/").includes("..")) at.invalid("must not contain '..'");
  if (places.has(path)) at.invalid("must be unique");
  places.add(path);
}

interface Hooks {
  readonly postStart: LifecycleHandler | null;
  readonly preStop: LifecycleHandler | null;
}
type Http = Extract<LifecycleHandler, { http: unknown }>["http"];

/** `grace`: the pod's termination grace period; null: it is wrong itself. kubernetes 1.36: validateLifecycle. */
function hooksOf(at: FieldValue, ports: readonly ContainerPort[], grace: number | null): Hooks {
  if (at.isAbsent || !checkFields(at, RULES.Lifecycle)) return { postStart: null, preStop: null };
  return {
    postStart: handlerOf(at.field("postStart"), ports, grace),
    preStop: handlerOf(at.field("preStop"), ports, grace),
  };
}

function handlerOf(at: FieldValue, ports: readonly ContainerPort[], grace: number | null): LifecycleHandler | null {
  if (at.isAbsent || !checkFields(at, RULES.LifecycleHandler)) return null;
  const kinds = at.keys.filter((key) => !at.field(key).isAbsent);
  if (kinds.length === 0) at.required("must specify a handler type");
  for (const kind of kinds.slice(1)) at.field(kind).fault("Forbidden: may not specify more than 1 handler type");
  const exec = at.field("exec");
  if (!exec.isAbsent) return execOf(exec);
  const http = at.field("httpGet");
  if (!http.isAbsent) return { http: httpOf(http, ports) };
  const sleep = at.field("sleep");
  return sleep.isAbsent ? null : { sleepSeconds: sleepOf(sleep, grace) };
}

function sleepOf(at: FieldValue, grace: number | null): number {
  checkFields(at, RULES.SleepAction);
  const seconds = at.field("seconds").whole() ?? 0;
  if (grace !== null && (seconds < 0 || seconds > grace)) {
    at.field("seconds").invalid(`must be non-negative and less than terminationGracePeriodSeconds (${grace})`);
  }
  return seconds;
}

function httpOf(at: FieldValue, ports: readonly ContainerPort[]): Http {
  const get = httpGetOf(at);
  const scheme = get.scheme === "HTTPS" ? "https" : "http";
  return { ...get, scheme, port: portNumber(at.field("port"), get.port, ports) };
}

/** A hook is run at once, so a name must be one of the container's ports. */
function portNumber(at: FieldValue, port: ProbePort, ports: readonly ContainerPort[]): number {
  if (typeof port === "number") return port;
  const named = ports.find(({ name }) => name === port);
  if (named !== undefined) return named.containerPort;
  if (portName(port).length === 0) at.invalid("no port of this container has that name");
  return 0;
}
