import { join } from "node:path";
import type { MethodDefinition, ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import { loadSync, type PackageDefinition } from "@grpc/proto-loader";
import type { PluginCalls, PluginMethod } from "./names.ts";

type Loaded = MethodDefinition<object, object>;
let loaded: PackageDefinition | undefined;

/** The files are parsed at the first use. */
function definitions(): PackageDefinition {
  const files = ["deviceplugin.proto", "pluginregistration.proto"].map((file) => join(import.meta.dirname, file));
  loaded ??= loadSync(files, { longs: Number, defaults: true });
  return loaded;
}

/** A service by its full name, `v1beta1.Registration`. */
export const serviceOf = (name: string): ServiceDefinition<UntypedServiceImplementation> =>
  definitions()[name] as unknown as ServiceDefinition<UntypedServiceImplementation>;

/** The codec of a method's request and answer; the answer of Allocate stays as it came. */
export function codecOf<M extends PluginMethod>(
  method: M,
): {
  readonly write: (request: PluginCalls[M][0]) => Buffer;
  readonly read: (bytes: Buffer) => PluginCalls[M][1];
} {
  const { requestSerialize, responseDeserialize } = methodAt(method);
  const read = method.endsWith("/Allocate") ? (bytes: Buffer) => bytes : responseDeserialize;
  return {
    write: requestSerialize as (request: PluginCalls[M][0]) => Buffer,
    read: read as (bytes: Buffer) => PluginCalls[M][1],
  };
}

export const LIST_AND_WATCH = "/v1beta1.DevicePlugin/ListAndWatch";

/** A method by its path, `/v1beta1.Registration/Register`. */
export function methodAt(path: string): Loaded {
  const [, service, method] = path.split("/") as [string, string, string];
  return (serviceOf(service) as unknown as Record<string, Loaded>)[method] as Loaded;
}
