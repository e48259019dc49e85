import { err, ok, type Result } from "../../base/result.ts";
import type { DraDriver } from "../../model/resource-claim.ts";
import type { Behaviour } from "../../profiles/profile.ts";
import { quote } from "../go/strconv.ts";

/** The gRPC services by which the kubelet calls drivers, the newest first. kubelet 1.37: servicesSupportedByKubelet. */
export const DRA_SERVICES = ["v1.DRAPlugin", "v1beta1.DRAPlugin"] as const;
export type DraService = (typeof DRA_SERVICES)[number];

/** Chooses the first service that both the driver and the kubelet support. kubelet 1.37: validateSupportedServices. */
export function chooseService(services: readonly string[]): Result<DraService, string> {
  if (services.length === 0) return err("empty list of supported gRPC services (aka supported versions)");
  const chosen = services.find((service) => DRA_SERVICES.some((one) => one === service));
  if (chosen !== undefined) return ok(chosen as DraService);
  const listed = (list: readonly string[]): string => `[${list.map(quote).join(" ")}]`;
  return err(
    `none of services supported by the plugin (${listed(services)}) are supported by the kubelet (${listed(DRA_SERVICES)})`,
  );
}

/**
 * The service by which the kubelet calls a posted driver. Errors: the driver registers no service that the kubelet
 * knows.
 */
export const registeredService = ({
  services = ["v1.DRAPlugin"],
}: Pick<DraDriver, "services">): Result<DraService, string> => chooseService(services);

/** The gRPC services by which drivers tell the health of their devices, the newest first. kubelet 1.37: healthServicesSupportedByKubelet. */
export const HEALTH_SERVICES = ["v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"] as const;
export type HealthService = (typeof HEALTH_SERVICES)[number];

/** The health service of a driver; undefined: the kubelet does not ask it. kubelet 1.37: pickHealthService. */
export const healthService = (
  services: readonly string[],
  { healthByService }: Behaviour["claims"],
): HealthService | undefined =>
  healthByService ? HEALTH_SERVICES.find((one) => services.includes(one)) : "v1alpha1.DRAResourceHealth";

/**
 * The error for an endpoint of a driver that is already registered: a driver may have several plugins, each with its
 * own endpoint. kubelet 1.37: DRAPluginManager.add.
 */
export const endpointTaken = (driver: string, endpoint: string): string =>
  `endpoint ${endpoint} already registered for DRA driver plugin ${driver}`;
