import { join, resolve } from "node:path";
import { type ActuatorConfig, actuatorConfig } from "../../../actuator/core/config.ts";
import type { GcKind } from "../../../actuator/gc/journal.ts";
import type { SharedDeps } from "../../../actuator/gc/open.ts";
import { ok, type Result } from "../../base/result.ts";
import type { GcOperation } from "../../model/container-gc.ts";
import type { Explain } from "../../model/decision.ts";
import { stateHome } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, type Form, fault, type Terminal } from "../terminal.ts";

/** Flags under commander's names. */
export interface GcFlags {
  readonly preview?: boolean;
  readonly dryRun?: boolean;
  readonly runtimeEndpoint?: string;
  readonly kubeletConfig?: string;
  readonly pods?: string;
  readonly manifests?: string;
  readonly operation: GcOperation;
  readonly seen?: string;
  readonly stateDir?: string;
  readonly api?: string;
  readonly apiTokenFile?: string;
  readonly nodeName?: string;
  readonly podLogsDirectory?: string;
  readonly containerLogsDirectory?: string;
  readonly minimumContainerTtlDuration?: string;
  readonly maximumDeadContainersPerContainer?: number;
  readonly maximumDeadContainers?: number;
  readonly output: Form;
  readonly explain?: Explain;
}

export const isPreview = ({ preview, dryRun }: GcFlags): boolean => preview === true || dryRun === true;

/** The actuator's settings for one collection. Errors: every invalid setting. */
export function configOf(given: GcFlags, env: Cli["env"]): Result<ActuatorConfig, Fault> {
  const { runtimeEndpoint, kubeletConfig, manifests, stateDir, api, apiTokenFile, nodeName } = given;
  const { podLogsDirectory, containerLogsDirectory, minimumContainerTtlDuration } = given;
  const settings = {
    stateDir: stateDir ?? join(stateHome(env), "actuator"),
    garbageCollection: isPreview(given) ? "observe" : "enforce",
    runtimeEndpoint,
    kubeletConfiguration: kubeletConfig,
    manifests: manifests === undefined ? undefined : resolve(manifests),
    api,
    apiTokenFile,
    nodeName,
    podLogsDirectory,
    containerLogsDirectory,
    minimumContainerTTL: minimumContainerTtlDuration,
    maximumDeadContainersPerContainer: given.maximumDeadContainersPerContainer,
    maximumDeadContainers: given.maximumDeadContainers,
  };
  const config = actuatorConfig(
    Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)),
  );
  return config.ok ? ok(config.value) : fault(EXIT.badInput, config.error);
}

/** One collection, or its preview. */
export interface GcJob {
  readonly kind: GcKind;
  /** The collection depends on pods, and none are given. */
  readonly lacksPods: boolean;
  readonly given: GcFlags;
  readonly config: ActuatorConfig;
  readonly world: Omit<SharedDeps, "client">;
  readonly terminal: Terminal;
}
