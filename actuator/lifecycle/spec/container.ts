import type { PodContainer, TextMap } from "../pod.ts";
import { annotatedProfile } from "./app-armor-annotation.ts";
import type { At } from "./at.ts";
import { envVarsOf } from "./env-vars.ts";
import { pullPolicyOf } from "./image.ts";
import { hooksOf } from "./lifecycle-hooks.ts";
import { mountsOf } from "./mounts.ts";
import { dnsLabel } from "./names.ts";
import { portsOf } from "./ports.ts";
import { probesOf } from "./probes.ts";
import { checkResources } from "./resources.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";
import { containerSecurityOf } from "./security.ts";

/** What a container takes from its pod. */
export interface Around {
  readonly volumes: ReadonlySet<string>;
  readonly hostNetwork: boolean;
  /** Null: it is wrong itself. */
  readonly grace: number | null;
  readonly annotations: TextMap;
}
const MESSAGE_PATH = "/dev/termination-log";

/** kubernetes 1.36: validateContainerCommon, validateInitContainers, SetDefaults_Container. */
export function containerOf(at: At, isInit: boolean, around: Around): PodContainer {
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

function isSidecarAt(at: At, isInit: boolean): boolean {
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
function messagePathOf(at: At): string {
  if (at.isEmpty) return MESSAGE_PATH;
  if (!at.text().startsWith("/")) at.invalid("must be an absolute path");
  else if (at.text().split("/").includes("..")) at.invalid("must not contain '..'");
  return at.text();
}
