import type { ReasonCode } from "../../model/decision.ts";
import type { Node } from "../../model/placement.ts";
import type { Pod } from "../../model/pod.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import type { EffectiveConfiguration } from "../../profiles/effective.ts";
import type { Reasons } from "../reasons.ts";

/** One admission: what every handler may look at. */
export interface Admitting {
  /** As asked, but for the resources that the kubelet has allocated. */
  readonly pod: Pod;
  readonly node: Node;
  readonly config: EffectiveConfiguration;
  readonly kubelet: NonNullable<Snapshot["kubelet"]>;
  /** The other pods that count on the node, with their allocated resources. */
  readonly others: readonly Pod[];
  readonly reasons: Reasons<ReasonCode<"admission">>;
  /** JSON paths of what a handler wanted to know and nobody posted; it lets the pod pass there. */
  readonly needs: Set<string>;
}
/** Why a handler refuses: the pod's reason, and the message to the byte. */
export interface Refused {
  readonly reason: string;
  readonly message: string;
}
