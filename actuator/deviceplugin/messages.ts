/** The API that plugins must speak. kubelet 1.36: pluginapi.SupportedVersions. */
export const SUPPORTED_VERSIONS: readonly string[] = ["v1beta1"];
/** What a plugin may send in one message; gRPC's own default, which the kubelet has. */
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
/** v1beta1.Device as it comes from the wire. */
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
