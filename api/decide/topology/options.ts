import { err, ok, type Result } from "../../model/result.ts";
import { parseBool, parseWhole, quote } from "../go/strconv.ts";

export interface TopologyOptions {
  readonly preferClosest: boolean;
  /** A machine with more NUMA nodes than this does not get a kubelet with a topology policy. */
  readonly maxNodes: number;
}
const DEFAULT_MAX_NODES = 8;
export const DEFAULT_OPTIONS: TopologyOptions = { preferClosest: false, maxNodes: DEFAULT_MAX_NODES };

type Read = (options: TopologyOptions, value: string, name: string) => Result<TopologyOptions, string>;

const preferClosest: Read = (options, value, name) => {
  const parsed = parseBool(value);
  if (!parsed.ok) return err(`bad value for option ${quote(name)}: ${parsed.error}`);
  return ok({ ...options, preferClosest: parsed.value });
};
const maxNodes: Read = (options, value, name) => {
  const parsed = parseWhole(value);
  if (!parsed.ok) return err(`unable to convert policy option to integer ${quote(name)}: ${parsed.error}`);
  const most = Number(parsed.value);
  if (most >= DEFAULT_MAX_NODES) return ok({ ...options, maxNodes: most });
  return err(`the minimum value of ${quote(name)} should not be less than ${DEFAULT_MAX_NODES}`);
};

/**
 * All are stable in 1.36, so the gates TopologyManagerPolicyAlphaOptions and ...BetaOptions have nothing to let through,
 * and TopologyManagerPolicyOptions is locked on.
 */
const OPTIONS: ReadonlyMap<string, Read> = new Map([
  ["prefer-closest-numa-nodes", preferClosest],
  ["max-allowable-numa-nodes", maxNodes],
]);

/**
 * `topologyManagerPolicyOptions`; the error is the kubelet's. Of several faults the kubelet names any one, this the first
 * by the option's name. kubelet 1.36: topologymanager.NewPolicyOptions.
 */
export function topologyOptions(values: Readonly<Record<string, string>>): Result<TopologyOptions, string> {
  let options = DEFAULT_OPTIONS;
  for (const name of Object.keys(values).sort()) {
    const read = OPTIONS.get(name);
    if (read === undefined) return err(`unknown Topology Manager Policy option: ${quote(name)}`);
    const next = read(options, values[name] as string, name);
    if (!next.ok) return next;
    options = next.value;
  }
  return ok(options);
}
