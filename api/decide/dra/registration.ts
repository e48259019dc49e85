import { err, ok, type Result } from "../../model/result.ts";
import { quote } from "../go/strconv.ts";

/** The gRPC services by which the kubelet calls drivers, the newest first. kubelet 1.37: servicesSupportedByKubelet. */
export const DRA_SERVICES = ["v1.DRAPlugin", "v1beta1.DRAPlugin"] as const;
export type DraService = (typeof DRA_SERVICES)[number];

/** The first of the services that a driver registers with which the kubelet has too. kubelet 1.37: validateSupportedServices. */
export function chooseService(services: readonly string[]): Result<DraService, string> {
  if (services.length === 0) return err("empty list of supported gRPC services (aka supported versions)");
  const chosen = services.find((service) => DRA_SERVICES.some((one) => one === service));
  if (chosen !== undefined) return ok(chosen as DraService);
  const listed = (list: readonly string[]): string => `[${list.map(quote).join(" ")}]`;
  return err(
    `none of services supported by the plugin (${listed(services)}) are supported by the kubelet (${listed(DRA_SERVICES)})`,
  );
}

/** A driver may have several plugins, each with an endpoint of its own. kubelet 1.37: DRAPluginManager.add. */
export const endpointTaken = (driver: string, endpoint: string): string =>
  `endpoint ${endpoint} already registered for DRA driver plugin ${driver}`;
