import { readFileSync } from "node:fs";
import { decideLocally } from "../../actuator/client/local-client.ts";
import type { Kind } from "../../api/model/decision.ts";
import { realNode } from "../cli/run.ts";
import { requesting } from "../kit/pods.ts";

export const snapshot = JSON.parse(readFileSync(realNode("snapshot.json"), "utf8"));
const ASKS: Partial<Record<Kind, object>> = { admission: { pod: requesting("in", { cpu: "10m" }) } };
const WITH_RUNTIME = {
  ...snapshot,
  runtime: {
    images: JSON.parse(readFileSync(realNode("images.json"), "utf8")).images,
    containers: JSON.parse(readFileSync(realNode("containers.json"), "utf8")).containers,
    sandboxes: JSON.parse(readFileSync(realNode("sandboxes.json"), "utf8")).items,
  },
};

/** The body of an API's answer. */
export type Reply = Readonly<Record<string, unknown>>;
/** As the API would answer it. */
export function answered(kind: Kind): Reply {
  const asked = kind.endsWith("-gc") ? WITH_RUNTIME : snapshot;
  const here = decideLocally(kind, asked, { ask: ASKS[kind] });
  if (!here.ok) throw new Error(here.error.message);
  return JSON.parse(JSON.stringify({ ...here.value, id: "d-1" }));
}
