import { type InputIssue, joinPath } from "./input-issue.ts";

type Fields = Readonly<Record<string, unknown>>;
const NONE: Fields = {};
const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : NONE);

/**
 * A posted snapshot whose `/stats/summary` is another node's: a decision on it would be that of the other node's memory and
 * disks. Whose the stats are is looked at here, since no decision reads it and nothing of it is stored. Undefined: they are
 * this node's, or nobody says whose they are.
 */
export function othersStats(input: unknown, at: string): InputIssue | undefined {
  const { stats, node, pods } = fieldsOf(input);
  const named = nameIn(fieldsOf(fieldsOf(stats)["node"])["nodeName"]);
  if (named === undefined) return undefined;
  const own = nameIn(fieldsOf(fieldsOf(node)["metadata"])["name"]) ?? nodeOfAll(pods);
  if (own === undefined || own === named) return undefined;
  const [its, name] = [named, own].map((text) => text.slice(0, LONGEST_NAME));
  const message = `the stats are of node ${its}, the snapshot is of node ${name}: post the /stats/summary of ${name}'s kubelet`;
  return { path: joinPath(at, ["stats", "node", "nodeName"]), message };
}
const LONGEST_NAME = 253;
/** The actuator writes "" where the machine has no name. */
const nameIn = (value: unknown): string | undefined => (typeof value === "string" && value !== "" ? value : undefined);

/** The node that all pods name. */
function nodeOfAll(posted: unknown): string | undefined {
  const items = Array.isArray(posted) ? posted : fieldsOf(posted)["items"];
  if (!Array.isArray(items)) return undefined;
  const name = nameIn(fieldsOf(fieldsOf(items[0])["spec"])["nodeName"]);
  return items.every((pod) => fieldsOf(fieldsOf(pod)["spec"])["nodeName"] === name) ? name : undefined;
}
