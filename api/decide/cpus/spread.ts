import { err, ok, type Result } from "../../base/result.ts";

/** The input of a search for a distribution over NUMA nodes. Nodes are indexes. */
interface SpreadAsk {
  /** Nodes with free CPUs, in the kubelet's order. */
  readonly nodes: readonly number[];
  /** Free CPUs of each node, by index. */
  readonly free: readonly number[];
  readonly count: number;
  /** The size of the groups in which CPUs are assigned; `count` is a multiple of it. */
  readonly group: number;
  /** If set, nodes of one socket come before all others, even if those are more evenly used. */
  readonly inOneSocket?: ((nodes: readonly number[]) => boolean) | undefined;
}
/** The nodes that each give the equal share (or all that they have), and the nodes that also give the remainder. */
export interface Spread {
  readonly nodes: readonly number[];
  readonly share: number;
  readonly remainder: readonly number[];
}

/**
 * The limit of steps for one search; a step takes less than a microsecond. Twelve nodes never reach it, sixteen only
 * in the worst cases.
 */
const MAX_SPREAD_STEPS = 2 ** 22;

interface Search extends SpreadAsk {
  /** The nodes without repetitions; a node that spans two sockets occurs twice. */
  readonly distinct: readonly number[];
  /** The average number of free CPUs per node after all are assigned: the same for each choice. */
  readonly mean: number;
  readonly steps: { left: number };
}
interface Remainder {
  /** The imbalance that a choice would leave; lower is better. */
  readonly balance: number;
  readonly remainder: readonly number[];
}
const NOTHING: Remainder = { balance: Number.POSITIVE_INFINITY, remainder: [] };

/**
 * Searches the best choice of a given number of nodes over which the CPUs can be spread; undefined: there is none. The
 * error says that the kubelet would never finish, or that the search takes too long. kubelet 1.36:
 * takeByTopologyNUMADistributed.
 */
export function spreadSearch(ask: SpreadAsk): (size: number) => Result<Spread | undefined, string> {
  const distinct = [...new Set(ask.nodes)];
  const free = distinct.reduce((sum, node) => sum + (ask.free[node] as number), 0);
  const mean = thousandths((free - ask.count) / distinct.length);
  const search: Search = { ...ask, distinct, mean, steps: { left: MAX_SPREAD_STEPS } };
  return (size) => bestSpread(search, size);
}

function bestSpread(search: Search, size: number): Result<Spread | undefined, string> {
  let best: Remainder & { readonly nodes?: readonly number[] } = NOTHING;
  let isBestInOne = false;
  let fault: string | undefined;
  const { count, group, inOneSocket } = search;
  const evenShare = Math.floor(Math.floor(count / size) / group) * group;
  combinations(search.nodes, size, (nodes) => {
    if (best.balance === 0 && (inOneSocket === undefined || isBestInOne)) return true;
    const share = inOneSocket === undefined ? evenShare : atMostFree(search, nodes, evenShare);
    if (search.steps.left-- <= 0) fault = tooLong(search);
    else if (fitsIn(search, nodes, share)) {
      const local = bestRemainder(search, nodes, share);
      if (!local.ok) fault = local.error;
      else {
        const isInOne = inOneSocket?.(nodes) === true;
        const isBetter = isInOne === isBestInOne ? local.value.balance < best.balance : isInOne;
        if (isBetter) {
          best = { ...local.value, nodes };
          isBestInOne = isInOne;
        }
      }
    }
    return fault !== undefined;
  });
  if (fault !== undefined) return err(fault);
  const { nodes, remainder } = best;
  if (nodes === undefined) return ok(undefined);
  // the kubelet takes no more of a node than it has
  return ok({ nodes, share: inOneSocket === undefined ? evenShare : atMostFree(search, nodes, evenShare), remainder });
}

/** The shares, each at most the node's free CPUs in whole groups. */
const atMostFree = ({ free, group }: Search, nodes: readonly number[], share: number): number =>
  Math.min(share, ...nodes.map((node) => Math.floor((free[node] as number) / group) * group));

function fitsIn({ free, count, group }: Search, nodes: readonly number[], share: number): boolean {
  let cpus = 0;
  let groups = 0;
  for (const [i, node] of nodes.entries()) {
    const there = free[node] as number;
    if (there < share) return false;
    if (nodes.indexOf(node) === i) cpus += there;
    groups += Math.floor(there / group);
  }
  return cpus >= count && groups * group >= count;
}

/**
 * Chooses the nodes that give the remainder after the equal share: as many nodes as possible, then the best balance.
 */
function bestRemainder(search: Search, nodes: readonly number[], share: number): Result<Remainder, string> {
  let best = NOTHING;
  const left = search.free.slice();
  for (const node of nodes) left[node] = (left[node] as number) - share;
  const rest = search.count - share * nodes.length;
  if (rest === 0) return ok({ balance: deviation(search, left), remainder: [] });
  const givers = nodes.filter((node) => (left[node] as number) >= search.group);
  const after = left.slice();
  let fault: string | undefined;
  for (let size = givers.length; size >= 1 && fault === undefined; size--) {
    combinations(givers, size, (subset) => {
      if (search.steps.left-- <= 0) fault = tooLong(search);
      else if (sumOf(left, subset) >= rest) {
        if (!distributeRemainder(after, subset, rest, search.group)) fault = endlessSearchMessage(rest, search.group);
        const balance = deviation(search, after);
        if (balance < best.balance) best = { balance, remainder: subset };
        for (const node of subset) after[node] = left[node] as number;
      }
      return fault !== undefined;
    });
  }
  return fault === undefined ? ok(best) : err(fault);
}

/** Takes `rest` from the nodes in turns; false: no node has a group left, where the kubelet loops for ever. */
function distributeRemainder(free: number[], nodes: readonly number[], rest: number, group: number): boolean {
  let left = rest;
  while (left > 0) {
    const before = left;
    for (const node of nodes) {
      if (left === 0) break;
      if ((free[node] as number) < group) continue;
      free[node] = (free[node] as number) - group;
      left -= group;
    }
    if (left === before) return false;
  }
  return true;
}
/** The message for `rest` CPUs that the kubelet would try to take for ever. */
export const endlessSearchMessage = (rest: number, group: number): string =>
  `the kubelet would not come back: it looks for ${rest} more CPUs in groups of ${group} on NUMA nodes that have none left`;
const tooLong = ({ nodes, count }: SpreadAsk): string =>
  `distributing ${count} CPUs over ${nodes.length} NUMA nodes takes more than ${MAX_SPREAD_STEPS} steps`;

function sumOf(values: readonly number[], of: readonly number[]): number {
  let sum = 0;
  for (const i of of) sum += values[i] as number;
  return sum;
}
/** The standard deviation; both it and its mean are rounded to thousandths. */
function deviation({ distinct, mean }: Search, values: readonly number[]): number {
  let squares = 0;
  for (const node of distinct) {
    const off = (values[node] as number) - mean;
    squares += off * off;
  }
  return thousandths(Math.sqrt(squares / distinct.length));
}
const thousandths = (n: number): number => Math.round(n * 1000) / 1000;

/**
 * Visits every choice of `size` entries of the list, in lexicographic order, until `visit` returns true.
 * INVARIANT: a list that `visit` keeps may change later, exactly as in the kubelet: Go's `append` writes into a list
 * with spare capacity, which is the next power of two. A kept choice of four therefore becomes its first three plus
 * the last fourth that was tried, and the kubelet allocates from that. kubelet 1.36: iterateCombinations.
 */
export function combinations(
  list: readonly number[],
  size: number,
  visit: (choice: readonly number[]) => boolean,
): void {
  const extend = (start: number, chosen: number[], length: number): boolean => {
    if (length === size) return visit(chosen);
    for (let i = start; i <= list.length - (size - length); i++) {
      if (extend(i + 1, append(chosen, length, list[i] as number), length + 1)) return true;
    }
    return false;
  };
  if (size > 0) extend(0, [], 0);
}

/** Appends to the first `length` entries of the list as Go's `append` does. */
function append(chosen: number[], length: number, value: number): number[] {
  const isFull = (length & (length - 1)) === 0;
  const room = isFull ? chosen.slice(0, length) : chosen;
  room[length] = value;
  return room;
}
