import { enforcementOf } from "../config.ts";
import { type LintFinding, note, warning } from "./finding.ts";
import type { LintInput } from "./input.ts";

/** Reserves that nobody is held to, and the other way round. kubelet 1.36: enforceNodeAllocatableCgroups. */
export function enforcementFindings(input: LintInput): readonly LintFinding[] {
  return [...(["kube", "system"] as const).flatMap((who) => ofReserve(input, who)), ...kubeletCgroup(input)];
}

function ofReserve({ config }: LintInput, who: "kube" | "system"): readonly LintFinding[] {
  const keys = enforcementOf(config);
  const [reserve, group] = [`${who}Reserved`, `${who}ReservedCgroup`] as const;
  const isEnforced = keys.has(`${who}-reserved`) || keys.has(`${who}-reserved-compressible`);
  const list = Object.keys(config[reserve] ?? {}).filter((name) => name !== "ephemeral-storage");
  const cgroup = config[group] ?? "";
  const key = `${who}-reserved`;
  if (isEnforced && list.length === 0 && cgroup !== "") {
    const message = `enforceNodeAllocatable names ${key}, and ${reserve} reserves nothing: ${cgroup} gets no limit`;
    const advice = `say in ${reserve} what these daemons may use`;
    return [warning({ code: "enforced-without-reserve", field: reserve, message, advice })];
  }
  if (isEnforced) return [];
  if (cgroup !== "") {
    const message = `${group} ${cgroup} does nothing: enforceNodeAllocatable does not name ${key}`;
    const advice = `add ${key} to enforceNodeAllocatable, or take it out`;
    return [note({ code: "reserved-cgroup-idle", field: group, message, advice, fix: { [group]: null } })];
  }
  if (list.length === 0) return [];
  const message = `${reserve} is taken off what pods get, and does not limit the daemons it is for: ${key} is not in enforceNodeAllocatable`;
  const advice = "nothing, unless they should be limited: that needs their cgroup, and a wrong one starves them";
  return [note({ code: "reserve-not-enforced", field: reserve, message, advice })];
}

/** kubelet 1.36: it logs so, and goes on. */
function kubeletCgroup({ given }: LintInput): readonly LintFinding[] {
  const own = given.text("kubeletCgroups");
  const reserved = given.text("kubeReservedCgroup");
  if (own === "" || reserved === "" || own.startsWith(reserved)) return [];
  const found = warning({
    code: "kubelet-outside-reserve",
    field: "kubeletCgroups",
    message: "unsupported configuration:KubeletCgroups is not within KubeReservedCgroup",
    advice: `put the kubelet into a cgroup below ${reserved}`,
  });
  return [{ ...found, kubelet: true }];
}
