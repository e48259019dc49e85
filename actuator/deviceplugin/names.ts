import { join } from "node:path";
import { err, ok, type Result } from "../../api/base/result.ts";
import { quote } from "../../api/decide/go/strconv.ts";
import { isExtendedResource } from "../../api/model/resource-name.ts";
import { isSocketPath, LONGEST_SOCKET_PATH } from "../core/addresses.ts";

/** The API that plugins must speak. kubelet 1.36: pluginapi.SupportedVersions. */
export const SUPPORTED_VERSIONS: readonly string[] = ["v1beta1"];
/** The largest message that a plugin may send: gRPC's default, which the kubelet uses. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;
export const HEALTHY = "Healthy";
export const UNHEALTHY = "Unhealthy";

export interface DevicePluginOptions {
  readonly preStartRequired: boolean;
  readonly getPreferredAllocationAvailable: boolean;
}
export interface RegisterRequest {
  readonly version: string;
  readonly endpoint: string;
  readonly resourceName: string;
}
/** v1beta1.Device as received. */
export interface ListedDevice {
  readonly ID: string;
  readonly health: string;
  readonly topology: { readonly nodes: readonly { readonly ID: number }[] } | null;
}

interface Ids {
  readonly devicesIds: readonly string[];
}
/** Method -> its request and its answer; a method that is called is a line here. `Buffer`: decoded elsewhere. */
export interface PluginCalls {
  "/v1beta1.DevicePlugin/GetDevicePluginOptions": [object, DevicePluginOptions];
  "/v1beta1.DevicePlugin/GetPreferredAllocation": [
    {
      readonly containerRequests: readonly {
        readonly availableDeviceIDs: readonly string[];
        readonly mustIncludeDeviceIDs: readonly string[];
        readonly allocationSize: number;
      }[];
    },
    { readonly containerResponses: readonly { readonly deviceIDs: readonly string[] }[] },
  ];
  "/v1beta1.DevicePlugin/Allocate": [{ readonly containerRequests: readonly Ids[] }, Buffer];
  "/v1beta1.DevicePlugin/PreStartContainer": [Ids, object];
  "/pluginregistration.Registration/GetInfo": [object, PluginInfo];
  "/pluginregistration.Registration/NotifyRegistrationStatus": [
    { readonly pluginRegistered: boolean; readonly error: string },
    object,
  ];
}
export type PluginMethod = keyof PluginCalls;
export interface PluginInfo {
  readonly type: string;
  readonly name: string;
  readonly endpoint: string;
  readonly supportedVersions: readonly string[];
}

/** The socket where plugins register. kubelet 1.36: KubeletSocket. */
export const SOCKET_NAME = "kubelet.sock";

/** The maximum length of a received text that an error repeats. */
const LONGEST_QUOTE = 256;
/** The text as Go's %q prints it. */
export const quoted = (text: string): string => quote(text.slice(0, LONGEST_QUOTE));

/** The kubelet's fault of an API version. kubelet 1.36: errUnsupportedVersion. */
export const versionFault = (version: string): string | undefined =>
  SUPPORTED_VERSIONS.includes(version)
    ? undefined
    : `requested API version ${quoted(version)} is not supported by kubelet. Supported version is [${SUPPORTED_VERSIONS.map(quoted).join(" ")}]`;

/** The kubelet's fault of a resource's name. kubelet 1.36: errInvalidResourceName. */
export const resourceFault = (resource: string): string | undefined =>
  isExtendedResource(resource) ? undefined : `the ResourceName ${quoted(resource)} is invalid`;

/**
 * The path of a socket that a plugin registers by name. The kubelet joins any text to its directory, even with `..`;
 * here it must be a plain name.
 */
export function endpointPath(dir: string, endpoint: string): Result<string, string> {
  const isName = endpoint !== "" && endpoint !== "." && endpoint !== ".." && !endpoint.includes("/");
  if (!isName) return err(`the endpoint ${quoted(endpoint)} must be the name of a socket in ${dir}, without a path`);
  if (endpoint === SOCKET_NAME) return err(`the endpoint ${quoted(endpoint)} is this node's own socket`);
  const path = join(dir, endpoint);
  return isSocketPath(path)
    ? ok(path)
    : err(`the endpoint ${quoted(endpoint)} in ${dir} is no path of at most ${LONGEST_SOCKET_PATH} readable bytes`);
}

/** The path of the socket that a plugin reports; empty: the socket where it was asked. */
export function reportedEndpoint(endpoint: string, asked: string): Result<string, string> {
  if (endpoint === "") return ok(asked);
  return isSocketPath(endpoint) && !endpoint.split("/").includes("..")
    ? ok(endpoint)
    : err(
        `the endpoint ${quoted(endpoint)} must be the path of a socket from \`/\`, without \`..\`, of at most ${LONGEST_SOCKET_PATH} readable bytes`,
      );
}
