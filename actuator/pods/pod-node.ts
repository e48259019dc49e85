import type { QuantityList } from "../../api/model/decision.ts";
import type { NodeSecurity } from "../lifecycle/config/security.ts";
import type { NodeDns } from "./dns.ts";

/** What pods take from the node that they run on. */
export interface PodNode {
  /** Its own, of the first family first. */
  readonly hostIPs: readonly string[];
  readonly allocatable: QuantityList;
  /** KubeletConfiguration; empty: there is no cluster. */
  readonly clusterDomain: string;
  readonly clusterDNS: readonly string[];
  /** Of `resolvConf`; null: that is empty. */
  readonly resolvConf: NodeDns["host"];
  readonly cgroupVersion: 1 | 2;
  readonly security: NodeSecurity;
}
