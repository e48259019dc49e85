import { join } from "node:path";
import { type Client, connectivityState, type MethodDefinition } from "@grpc/grpc-js";
import { loadSync, type PackageDefinition } from "@grpc/proto-loader";
import type { PreparedDevice } from "../../api/decide/dra/claim-info.ts";
import type { ClaimAnswer, DriverAnswer, DriverCall } from "../../api/decide/dra/prepare.ts";
import type { DraService, HealthService } from "../../api/decide/dra/registration.ts";
import { kubeletText } from "../containerd/fault.ts";
import { openMessageStream } from "../deviceplugin/message-stream.ts";
import { callWith, clientOf } from "../deviceplugin/plugin-client.ts";

/** The kubelet waits so long for an answer. kubelet 1.37: defaultClientCallTimeout. */
const DRIVER_TIMEOUT_MS = 45_000;
/** The maximum size of a response about one claim: all drivers' responses are stored in one file, with the claims of all pods. */
const MAX_ANSWER_BYTES = 256 * 1024;

type Loaded = MethodDefinition<object, object>;
let loaded: PackageDefinition | undefined;
/** The files are parsed at the first use. */
function definitions(): PackageDefinition {
  const files = ["dra-v1.proto", "dra-v1beta1.proto", "dra-health.proto"].map((file) =>
    join(import.meta.dirname, file),
  );
  loaded ??= loadSync(files, { defaults: true, longs: String });
  return loaded;
}
/** A service by the name by which drivers register it, `v1.DRAPlugin`. */
export const draServiceOf = (service: DraService): Readonly<Record<string, Loaded>> =>
  definitions()[`k8s.io.kubelet.pkg.apis.dra.${service}`] as unknown as Readonly<Record<string, Loaded>>;

/**
 * The gRPC service by the name that drivers register, such as `v1.DRAResourceHealth`; its versions share their
 * messages.
 */
export function healthServiceOf(service: HealthService): { readonly NodeWatchResources: Loaded } {
  const { NodeWatchResources } = definitions()["v1.DRAResourceHealth"] as unknown as Record<string, Loaded>;
  return { NodeWatchResources: { ...(NodeWatchResources as Loaded), path: `/${service}/NodeWatchResources` } };
}
/** A driver's report about its devices, as received. */
export interface HealthReport {
  readonly devices: readonly {
    readonly device: { readonly poolName: string; readonly deviceName: string } | null;
    readonly health: number;
    /** A whole number of 64 bits. */
    readonly healthCheckTimeoutSeconds: string;
    readonly message: string;
  }[];
}
/** Decodes a report; undefined: it is invalid. */
export function readHealthReport(bytes: Buffer): HealthReport | undefined {
  try {
    return healthServiceOf("v1.DRAResourceHealth").NodeWatchResources.responseDeserialize(bytes) as HealthReport;
  } catch {
    return undefined;
  }
}

interface Answer {
  readonly claims: Readonly<Record<string, { readonly error?: string; readonly devices?: readonly AnsweredDevice[] }>>;
}
interface AnsweredDevice {
  readonly requestNames: readonly string[];
  readonly poolName: string;
  readonly deviceName: string;
  readonly cdiDeviceIds: readonly string[];
  readonly shareId?: string;
}

/** One plugin of a DRA driver at its socket. */
export class DraDriver {
  readonly name: string;
  readonly endpoint: string;
  readonly service: DraService;
  readonly #client: Client;
  readonly #timeoutMs: number;
  readonly #life = new AbortController();

  constructor(name: string, endpoint: string, service: DraService, timeoutMs = DRIVER_TIMEOUT_MS) {
    this.name = name;
    this.endpoint = endpoint;
    this.service = service;
    this.#timeoutMs = timeoutMs;
    this.#client = clientOf(endpoint);
    // connects early, so that an unreachable driver is noticed
    this.#client.getChannel().getConnectivityState(true);
  }
  get isConnected(): boolean {
    return this.#client.getChannel().getConnectivityState(true) === connectivityState.READY;
  }
  close(): void {
    this.#life.abort();
    this.#client.close();
  }

  /** Streams its reports about its devices. kubelet 1.37: DRAPlugin.NodeWatchResources. */
  watchHealth(
    service: HealthService,
    how: Pick<Parameters<typeof openMessageStream>[0], "load" | "read" | "onEnd">,
  ): { readonly stop: () => void } {
    const { path } = healthServiceOf(service).NodeWatchResources;
    const of = { resource: this.name, endpoint: this.endpoint, call: "NodeWatchResources" };
    return openMessageStream({ client: this.#client, of, path, ...how });
  }

  /** kubelet 1.37: DRAPlugin.NodePrepareResources, NodeUnprepareResources. */
  async call({ operation, claims }: Omit<DriverCall, "driver">, signal?: AbortSignal): Promise<DriverAnswer> {
    const method = draServiceOf(this.service)[operation] as Loaded;
    const calling = {
      of: { resource: this.name, endpoint: this.endpoint, call: operation },
      timeoutMs: this.#timeoutMs,
      signal: signal === undefined ? this.#life.signal : AbortSignal.any([signal, this.#life.signal]),
    };
    const answered = await callWith<object, Answer>(
      this.#client,
      calling,
      {
        path: method.path,
        write: method.requestSerialize,
        read: method.responseDeserialize as (bytes: Buffer) => Answer,
      },
      { claims },
    );
    if (!answered.ok) return { failed: kubeletText(answered.error) };
    return { claims: new Map(Object.entries(answered.value.claims).map(([uid, one]) => [uid, answerOf(one)])) };
  }
}

function answerOf({ error = "", devices = [] }: Answer["claims"][string]): ClaimAnswer {
  if (error !== "") return { error, devices: [] };
  const bytes = Buffer.byteLength(JSON.stringify(devices));
  if (bytes > MAX_ANSWER_BYTES) {
    return { error: `the answer has ${bytes} bytes, more than the ${MAX_ANSWER_BYTES} of a claim`, devices: [] };
  }
  return { devices: devices.map(deviceOf) };
}
const deviceOf = ({
  requestNames,
  poolName,
  deviceName,
  cdiDeviceIds,
  shareId = "",
}: AnsweredDevice): PreparedDevice => ({
  poolName,
  deviceName,
  shareId: shareId === "" ? null : shareId,
  requestNames: requestNames.length === 0 ? null : requestNames,
  cdiDeviceIds: cdiDeviceIds.length === 0 ? null : cdiDeviceIds,
});
