import { fromUnits } from "../../model/amount.ts";
import type { Refusal } from "../../model/decision.ts";
import type { KubeletConfiguration } from "../../model/kubelet-configuration.ts";
import { type Quantity, quantityOf } from "../../model/quantity.ts";
import { err, ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { configurationOf, enforcementOf } from "../config.ts";
import type { Reasons } from "../reasons.ts";
import { nodeCapacity } from "./capacity.ts";
import { nodeAllocatableAbsolute } from "./node-allocatable.ts";
import { type Reserved, reservedOf } from "./reservation.ts";

/** What every node-level answer starts from. */
export interface NodeLevel {
  readonly config: KubeletConfiguration;
  readonly capacity: ReadonlyMap<string, Quantity>;
  readonly reserved: Reserved;
  /** Capacity less the reserves, without hard eviction. */
  readonly absolute: ReadonlyMap<string, Quantity>;
  /** Whether `pods` is enforced. */
  readonly enforced: boolean;
  /** The limits of the kubepods cgroup: `absolute` when enforced, else the capacity; with `pid` where the node tells it. */
  readonly kubepods: ReadonlyMap<string, Quantity>;
}

const refusal = (code: Refusal["code"], message: string, needs: readonly string[] = []): Result<never, Refusal> =>
  err({ code, message, needs });

/** Errors: the machine's size is not known, or a reserve cannot be read. */
export function nodeLevelOf(snapshot: Snapshot, reasons: Reasons, needs: string[]): Result<NodeLevel, Refusal> {
  const config = configurationOf(snapshot);
  const missing: string[] = [];
  const capacity = nodeCapacity(snapshot, reasons, missing);
  if (missing.length > 0) {
    return refusal(
      "needs_input",
      `the node's capacity is not known: post ${missing.join(" and ")}, or snapshot.machine`,
      missing,
    );
  }
  const reserved = reservedOf(config);
  if (!reserved.ok) return refusal("invalid_configuration", reserved.error);
  const { kube, system } = reserved.value;
  const internal = withProcessIds(capacity, snapshot, needs);
  const enforced = enforcementOf(config).has("pods") && config.cgroupsPerQOS !== false;
  const kubepods = enforced ? nodeAllocatableAbsolute(internal, kube, system) : internal;
  const absolute = nodeAllocatableAbsolute(capacity, kube, system);
  return ok({ config, capacity, reserved: reserved.value, absolute, enforced, kubepods });
}

/** Process ids are limited on the kubepods cgroup but are no resource of the node's status. */
function withProcessIds(capacity: Map<string, Quantity>, snapshot: Snapshot, needs: string[]): Map<string, Quantity> {
  const maxPid = snapshot.stats?.node?.rlimit?.maxpid;
  if (maxPid === null || maxPid === undefined) {
    needs.push("stats.node.rlimit.maxpid");
    return capacity;
  }
  return new Map(capacity).set("pid", quantityOf(fromUnits(maxPid), "DecimalSI"));
}
