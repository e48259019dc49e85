import type { Store } from "../../../db/store.ts";
import { HOUR_MS } from "../../base/duration.ts";
import { type Fields, isObject } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import type { Reply } from "../../dependencies.ts";
import { nodeNamed } from "../../http/nodes.ts";
import type { Exchange } from "../../http/route.ts";
import { decodeStored } from "../../model/decode.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { effectiveConfiguration } from "../../profiles/effective.ts";
import { chooseProfileFor } from "../../profiles/index.ts";
import { evictedOf, type FleetNode, fleetOf, knowsRefusals, refusedOf } from "../../service/fleet.ts";
import { historyProblem, invalid, type Problem } from "../../service/problem.ts";
import { postedSnapshot } from "../../service/replay/parsed.ts";
import { resourceOfSignal } from "../../text/size.ts";
import { ago, breakable, html, nodeName, quantityShown } from "../html.ts";
import { all, type Html, page } from "../page.ts";
import { headrooms, headroomText, REFUSALS_NOT_KNOWN, severityTag } from "./fleet.ts";

const HOURS = 24;

/** A node with its newest snapshot; null: none is stored, or it cannot be read. */
interface Compared {
  readonly node: FleetNode;
  readonly snapshot: Snapshot | null;
}
type Cell = string | number | Html | Promise<Html> | null | undefined;
/** A row of the table: a name, and its value on each of both nodes. */
type Row = readonly [name: string, a: Cell, b: Cell];
/** The row with the nodes' last snapshot times, which is not a difference between them. */
const SEEN = "Last seen";

/** GET /compare?node=A&node=B: two nodes side by side. */
export async function getCompare(exchange: Exchange): Promise<Result<Reply, Problem>> {
  const given = exchange.c.req.queries();
  const [other] = Object.keys(given).filter((name) => name !== "node");
  if (other !== undefined) return invalid(other.slice(0, 64), "there is no such parameter; there is node, twice");
  const [first, second, third] = given["node"] ?? [];
  if (first === undefined || second === undefined || third !== undefined || first === second)
    return page(
      "Two nodes",
      html`<p class="note warn">Two nodes are compared. Go back to the <a href="/">list of nodes</a>, tick two of them, and press <em>Compare two</em>.</p>`,
      {
        place: "/",
        status: 400,
      },
    );
  const nodes: Compared[] = [];
  for (const name of [first, second]) {
    const known = await nodeNamed(exchange, name);
    if (!known.ok) return known;
    const read = await compared(exchange.deps.store, name, exchange.deps.now());
    if (!read.ok) return read;
    nodes.push(read.value);
  }
  const [a, b] = nodes as [Compared, Compared];
  return page(
    "Two nodes",
    html`<p><a href="/">All nodes</a></p>
${table("State", a, b, pressureRows(a, b), false)}
${table("What they have", a, b, resources(a, b), false)}
${table("Labels that differ", a, b, pairs(labelsOf(a), labelsOf(b)), true)}
${table("Configuration that differs, with the defaults of each version", a, b, pairs(configurationOf(a), configurationOf(b)), true)}`,
    { place: "/" },
  );
}

async function compared(store: Store, name: string, nowMs: number): Promise<Result<Compared, Problem>> {
  const [fleet, stored] = await Promise.all([
    fleetOf(store, nowMs, Math.floor(nowMs / HOUR_MS - HOURS) * HOUR_MS, name),
    store.latestSnapshot(name),
  ]);
  if (!fleet.ok) return historyProblem(fleet.error);
  if (!stored.ok) return historyProblem(stored.error);
  const [node] = fleet.value;
  if (node === undefined) return invalid("node", `there is no node \`${name.slice(0, 253)}\``);
  const posted = stored.value === null ? null : postedSnapshot(stored.value);
  const decoded = posted?.ok === true ? decodeStored(posted.value) : null;
  return ok({ node, snapshot: decoded?.ok === true ? decoded.value : null });
}

/** `onlyOther`: leaves out rows in which the nodes are equal. */
function table(
  title: string,
  a: Compared,
  b: Compared,
  rows: readonly Row[],
  onlyOther: boolean,
): Html | Promise<Html> {
  const shown = rows.filter(([, x, y]) => (onlyOther ? textOf(x) !== textOf(y) : (x ?? y) !== undefined));
  if (shown.length === 0) return html`<h2>${title}</h2><p class="soft">none</p>`;
  const body = shown.map(([name, x, y]) => {
    const isOther = name !== SEEN && textOf(x) !== textOf(y);
    return html`<tr><th scope="row">${breakable(name)}</th>${all([x, y].map((cell) => html`<td class="${isOther ? "changed" : ""}">${cell ?? html`<span class="soft">–</span>`}</td>`))}</tr>`;
  });
  return html`<h2>${title}</h2><div class="scroll" tabindex="0" role="region" aria-label="${title}"><table class="compare stacked">
<thead><tr><td></td>${[a, b].map(({ node }) => html`<th>${nodeName(node.name, breakable(node.name))}</th>`)}</tr></thead><tbody>${all(body)}</tbody></table></div>`;
}

/** The cell's text; asynchronous cells count as equal. */
const textOf = (cell: Cell): string => (cell instanceof Promise ? "" : String(cell ?? ""));

const each = (a: Compared, b: Compared, cell: (of: Compared) => Cell): readonly [Cell, Cell] => [cell(a), cell(b)];

function pressureRows(a: Compared, b: Compared): readonly Row[] {
  const left =
    (signals: readonly string[]) =>
    ({ node }: Compared): Cell => {
      const found = node.headroom.find(({ signal }) => signals.includes(signal));
      return found === undefined
        ? null
        : html`<span title="threshold ${found.threshold}">${headroomText(found)}</span>`;
    };
  return [
    ["State", ...each(a, b, ({ node }) => severityTag(node.severity))],
    ["Kubelet", ...each(a, b, ({ node }) => node.kubeletVersion ?? node.kubelet)],
    [
      "Conditions",
      ...each(a, b, ({ node }) => (node.pressureFrom === null ? null : node.conditions.join(", ") || "no pressure")),
    ],
    ...headrooms([a.node, b.node]).map(([name, ...signals]): Row => [`Left of ${name}`, ...each(a, b, left(signals))]),
    [
      `Refused in ${HOURS} h`,
      ...each(a, b, ({ node }) => refusedOf(node) || (knowsRefusals(node) ? 0 : REFUSALS_NOT_KNOWN)),
    ],
    [`Evicted in ${HOURS} h`, ...each(a, b, ({ node }) => evictedOf(node))],
    ["Files that drifted", ...each(a, b, ({ node }) => node.drift)],
    [`Decisions in ${HOURS} h`, ...each(a, b, ({ node }) => node.decisions)],
    ["Zone", ...each(a, b, ({ node }) => node.zone)],
    [SEEN, ...each(a, b, ({ node }) => ago(node.lastSeenMs))],
  ];
}

function resources(a: Compared, b: Compared): readonly Row[] {
  const amounts = (of: "capacity" | "allocatable") => (node: Compared) =>
    Object.fromEntries(
      Object.entries(node.snapshot?.node?.status?.[of] ?? {}).map(([name, { text }]) => [
        name,
        quantityShown(name, text),
      ]),
    );
  const rows = (of: "capacity" | "allocatable"): readonly Row[] =>
    pairs(amounts(of)(a), amounts(of)(b)).map(([name, x, y]): Row => [`${name} (${of})`, x, y]);
  return [
    ["Pods", ...each(a, b, ({ snapshot }) => snapshot?.pods?.length)],
    ...rows("capacity"),
    ...rows("allocatable"),
    [
      "Cgroups",
      ...each(
        a,
        b,
        ({ snapshot }) => snapshot?.cgroup && `v${snapshot.cgroup.version ?? "?"}, ${snapshot.cgroup.driver ?? "?"}`,
      ),
    ],
    ["Kernel", ...each(a, b, ({ snapshot }) => snapshot?.node?.status?.nodeInfo?.kernelVersion)],
  ];
}

const labelsOf = ({ node }: Compared): Fields => node.labels ?? {};

/** Each field by its path, including the defaults of the node's kubelet. */
function configurationOf({ snapshot }: Compared): Fields {
  if (snapshot === null) return {};
  const { profile } = chooseProfileFor(snapshot);
  const { profile: _, given: __, ...fields } = effectiveConfiguration(profile, snapshot.kubeletConfiguration ?? {});
  return flat(JSON.parse(JSON.stringify(fields)));
}

function flat(value: unknown, path = ""): Fields {
  if (!isObject(value)) return { [path]: typeof value === "string" ? configured(path, value) : JSON.stringify(value) };
  return Object.assign(
    {},
    ...Object.entries(value).map(([name, member]) => flat(member, path === "" ? name : `${path}.${name}`)),
  );
}

/** Shows byte amounts in readable units, for example `kubeReserved.memory`, `evictionHard.nodefs.available`. */
const configured = (path: string, value: string): Html | string =>
  quantityShown(resourceOfSignal(path.slice(path.indexOf(".") + 1)), value);

/** The members of both, by name. */
const pairs = (a: Fields, b: Fields): readonly Row[] =>
  [...new Set([...Object.keys(a), ...Object.keys(b)])]
    .sort()
    .map((name): Row => [name, a[name] as Cell, b[name] as Cell]);
