import type { KubeletConfiguration } from "../../model/kubelet-configuration.ts";

/** The field that keeps most people's share of a resource back: where to begin when it is too much. */
export function reserveField(config: KubeletConfiguration, resource: string): string {
  if (resource === "cpu" && (config.reservedSystemCPUs ?? "") !== "") return "reservedSystemCPUs";
  const has = (field: "kubeReserved" | "systemReserved"): boolean => config[field]?.[resource] !== undefined;
  return has("kubeReserved") ? "kubeReserved" : has("systemReserved") ? "systemReserved" : "evictionHard";
}
