import { own } from "../../model/own.ts";
import { APP_ARMOR_ANNOTATION, type AppArmorProfile } from "../../model/placement.ts";
import { type Container, containersOf, type Pod } from "../../model/pod.ts";
import { quote } from "../go/strconv.ts";
import type { Admitting, Refused } from "./admitting.ts";

const isConfined = (p: AppArmorProfile | undefined): boolean => p !== undefined && p.type !== "Unconfined";
const refused = (what: string): Refused => ({ reason: "AppArmor", message: `Cannot enforce AppArmor: ${what}` });

/** A pod that has not started needs a host that enforces its profiles, and names for them. kubelet 1.36: appArmorAdmitHandler. */
export function appArmorRefusals({ pod, kubelet, needs }: Admitting): readonly Refused[] {
  const phase = pod.status?.phase ?? "";
  // a pod that is created is Pending
  if ((phase !== "" && phase !== "Pending") || !isRequired(pod)) return [];
  if (kubelet.appArmor === undefined) needs.add("kubelet.appArmor");
  if (kubelet.appArmor === false) return [refused("AppArmor is not enabled on the host")];
  const nameless = containersOf(pod)
    .map((c) => profileOf(pod, c))
    .find((p) => p?.type === "Localhost" && (p.localhostProfile ?? "").trim() === "");
  return nameless === undefined ? [] : [refused(`invalid empty AppArmor profile name: ${quote(goText(nameless))}`)];
}

function isRequired(pod: Pod): boolean {
  if (isConfined(pod.spec.securityContext?.appArmorProfile)) return true;
  if (containersOf(pod).some((c) => isConfined(c.securityContext?.appArmorProfile))) return true;
  const annotations = Object.entries(pod.metadata.annotations ?? {}).filter(([k]) =>
    k.startsWith(APP_ARMOR_ANNOTATION),
  );
  // the kubelet looks at one of them, whichever Go's map gives first; here any that asks for a profile counts
  return annotations.some(([, profile]) => profile !== "unconfined");
}

/** The container's own, else that of the annotation, else the pod's. kubernetes 1.36: apparmor.GetProfile. */
function profileOf(pod: Pod, c: Container): AppArmorProfile | undefined {
  return (
    c.securityContext?.appArmorProfile ??
    annotated(own(pod.metadata.annotations, `${APP_ARMOR_ANNOTATION}${c.name}`)) ??
    pod.spec.securityContext?.appArmorProfile
  );
}
function annotated(text: string | undefined): AppArmorProfile | undefined {
  if (text === "runtime/default") return { type: "RuntimeDefault" };
  if (text === "unconfined") return { type: "Unconfined" };
  const localhost = "localhost/";
  return text?.startsWith(localhost)
    ? { type: "Localhost", localhostProfile: text.slice(localhost.length) }
    : undefined;
}
/** As Go's generated code prints the profile. */
const goText = ({ type, localhostProfile }: AppArmorProfile): string =>
  `&AppArmorProfile{Type:${type},LocalhostProfile:${localhostProfile === undefined ? "nil" : `*${localhostProfile}`},}`;
