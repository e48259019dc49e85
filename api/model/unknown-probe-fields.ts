import { type InputIssue, joinPath } from "./input-issue.ts";
import { LIMITS } from "./limits.ts";
import { nearName } from "./near-name.ts";
import { podProbe } from "./probes-field.ts";
import { PROBE_FIELD } from "./probes-issues.ts";

/** Of a container; its other fields are nobody's business here, but one that is nearly a probe is meant to be one. */
const FIELDS: readonly string[] = Object.values(PROBE_FIELD);
const NO_FIELD = "no such field";
const PROBE = Object.keys(podProbe.shape);
/** v1.ExecAction, v1.HTTPGetAction, v1.TCPSocketAction, v1.GRPCAction, of which a print stands for what may be secret. */
const HANDLER: Readonly<Record<string, readonly string[]>> = {
  exec: ["command", "print"],
  httpGet: ["scheme", "host", "port", "path", "httpHeaders", "print"],
  tcpSocket: ["host", "port"],
  grpc: ["port", "service"],
};
/** Nobody misspells one that is so long. */
const LONGEST_NAME = 64;
type Fields = Readonly<Record<string, unknown>>;

/**
 * Fields of a posted pod's probes that v1.Probe does not have, with the name that was perhaps meant: a misspelt field is a
 * default that nobody wanted, and a strict API server refuses it.
 */
export function unknownProbeFields(pod: unknown, at: string): readonly InputIssue[] {
  const { spec } = fieldsOf(pod);
  const found = ["initContainers", "containers"].flatMap((list) => {
    const all = fieldsOf(spec)[list];
    if (!Array.isArray(all)) return [];
    return all.slice(0, LIMITS.containersPerPod).flatMap((item, i) => {
      const container = fieldsOf(item);
      const here = joinPath(at, ["spec", list, i]);
      const meant = unknown(container, FIELDS, here).filter(({ message }) => message !== NO_FIELD);
      return [...meant, ...FIELDS.flatMap((field) => ofProbe(fieldsOf(container[field]), joinPath(here, [field])))];
    });
  });
  return found.slice(0, LIMITS.issues);
}

function ofProbe(probe: Fields, at: string): readonly InputIssue[] {
  const ofHandlers = Object.entries(HANDLER).flatMap(([handler, known]) =>
    unknown(fieldsOf(probe[handler]), known, joinPath(at, [handler])),
  );
  return [...unknown(probe, PROBE, at), ...ofHandlers];
}

const unknown = (given: Fields, known: readonly string[], at: string): readonly InputIssue[] =>
  Object.keys(given)
    .filter((name) => !known.includes(name))
    .map((name) => {
      const near = name.length > LONGEST_NAME ? null : nearName(name, known);
      return { path: joinPath(at, [name]), message: near === null ? NO_FIELD : `${NO_FIELD}; \`${near}\`?` };
    });

const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
