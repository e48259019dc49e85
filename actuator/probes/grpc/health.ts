import { join } from "node:path";
import { loadSync, type MethodDefinition } from "@grpc/proto-loader";
import { err, ok, type Result } from "../../../api/model/result.ts";
import { type GrpcStatus, internal } from "./grpc-status.ts";

type Check = MethodDefinition<{ readonly service: string }, { readonly status: string | number }>;
let loaded: Check | undefined;

/** The call of grpc.health.v1; the file is read at the first use. */
function check(): Check {
  if (loaded === undefined) {
    const service = loadSync(join(import.meta.dirname, "health.proto"), { enums: String, defaults: true })[
      "grpc.health.v1.Health"
    ] as { readonly Check: unknown } | undefined;
    loaded = service?.Check as Check;
  }
  return loaded;
}
export const HEALTH_PATH = "/grpc.health.v1.Health/Check";
export const healthRequest = (service: string): Uint8Array => check().requestSerialize({ service });

/** The status by its name, or by its number where it has none. */
export function healthStatus(message: Buffer): Result<string, GrpcStatus> {
  try {
    return ok(String(check().responseDeserialize(message).status));
  } catch {
    return err(
      internal("grpc: failed to unmarshal the received message: proto: cannot parse invalid wire-format data"),
    );
  }
}
