import { decideLocally } from "../../actuator/client/local-client.ts";
import type { Kind } from "../../api/model/decision.ts";
import { requesting } from "../kit/pods.ts";
import { captured, realLists } from "../kit/real-node.ts";

export const snapshot = captured("snapshot.json");
const ASKS: Partial<Record<Kind, object>> = { admission: { pod: requesting("in", { cpu: "10m" }) } };
const WITH_RUNTIME = {
  ...snapshot,
  runtime: realLists(),
};

/** The body of an API's answer. */
export type Reply = Readonly<Record<string, unknown>>;
/** The reply with which the API would answer a request for this kind. */
export function answered(kind: Kind): Reply {
  const asked = kind.endsWith("-gc") ? WITH_RUNTIME : snapshot;
  const here = decideLocally(kind, asked, { ask: ASKS[kind] });
  if (!here.ok) throw new Error(here.error.message);
  return JSON.parse(JSON.stringify({ ...here.value, id: "d-1" }));
}
