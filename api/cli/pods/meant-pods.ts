import type { NodeStatus } from "../../../actuator/status/node-status.ts";
import { nearNames } from "../../model/near-name.ts";
import { printable } from "../../text/style.ts";

const MOST = 3;

/** ` is it `web-n1` or `web-n2`?`; empty: no pod has a name like that. */
export function meantText(wanted: string, status: NodeStatus): string {
  const names = meantPods(wanted, status);
  return names.length === 0 ? "" : ` is it ${names.map((name) => `\`${printable(name)}\``).join(" or ")}?`;
}

/**
 * The pods, at most three, that somebody may have meant: the one that its manifest names so, which has the node's name
 * behind its own; else those whose name begins so; else those that few changed letters lead to.
 */
function meantPods(wanted: string, { pods, refusedManifests, nodeName }: NodeStatus): readonly string[] {
  const all = [...pods.map(({ namespace, name }) => `${namespace}/${name}`), ...refusedManifests.map(({ pod }) => pod)];
  const isWhole = wanted.includes("/");
  const names = [...new Set(all.map((name) => (isWhole ? name : name.slice(name.indexOf("/") + 1))))].sort();
  const suffix = `-${nodeName.toLowerCase()}`;
  if (names.includes(`${wanted}${suffix}`)) return [`${wanted}${suffix}`];
  const begin = wanted === "" ? [] : names.filter((name) => name.startsWith(`${wanted}-`));
  if (begin.length > 0) return begin.slice(0, MOST);
  // the suffix is long, and would count as letters that somebody left out
  const byOwn = new Map(names.map((name) => [name.endsWith(suffix) ? name.slice(0, -suffix.length) : name, name]));
  const near = [
    ...nearNames(wanted, names),
    ...nearNames(wanted, [...byOwn.keys()]).map((own) => byOwn.get(own) ?? own),
  ];
  return [...new Set(near)].slice(0, MOST);
}
