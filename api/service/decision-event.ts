import type { StreamedDecision } from "../../db/rows.ts";
import { isObject } from "../base/own.ts";
import { err, ok, type Result } from "../base/result.ts";
import { rfc3339 } from "./timestamp.ts";

/** JSON Pointers (RFC 6901) that OPA's decision logs can erase. */
const ERASABLE = /^\/(?:input|result)(?:\/(?:[^~]|~[01])*)?$/;
/** These two members are left out as a whole, and a snapshot that is left out is not even read. */
export const INPUT = "/input";
export const SNAPSHOT = "/input/snapshot";

export interface EventForm {
  /** Labels of the delivering process: `id`, `version`, and those that its operator configured. */
  readonly labels: Readonly<Record<string, string>>;
  /** Pointers to the members to erase from each event. */
  readonly erase: readonly string[];
}

/** Errors: no pointer, or one that is not below `/input` or `/result`. */
export const checkPointer = (pointer: string): Result<string, string> =>
  ERASABLE.test(pointer)
    ? ok(pointer)
    : err("expected a JSON Pointer to /input, /result or what is below one of them, such as /input/snapshot");

/** Whether the event of a decision contains its snapshot. */
export const wantsSnapshot = ({ erase }: EventForm): boolean => !erase.includes(INPUT) && !erase.includes(SNAPSHOT);

/**
 * A recorded decision as an event of OPA's decision logs, JSON text. `snapshot`: JSON text; null if erased or no longer stored.
 * Stored data contains no secrets (rule 3), and only the labels are added. The texts are joined without parsing unless pointers
 * erase parts of them. Errors: a damaged row, if it has to be parsed.
 */
export function eventText(row: StreamedDecision, snapshot: string | null, form: EventForm): Result<string, string> {
  const { id, kind, node, policyVersion, verdict, reason, explain, pod, snapshotId, decidedAtMs, ask, body } = row;
  const erased = [INPUT, SNAPSHOT].filter((pointer) => form.erase.includes(pointer)).slice(0, 1);
  const deeper = form.erase.filter((pointer) => pointer !== INPUT && pointer !== SNAPSHOT);
  const input = [
    ...(snapshot === null ? [] : [`"snapshot":${snapshot}`]),
    ...(ask === null ? [] : [`"ask":${ask}`]),
    `"explain":${JSON.stringify(explain)}`,
  ];
  const members = [
    `"labels":${JSON.stringify(form.labels)}`,
    `"decision_id":${JSON.stringify(id)}`,
    `"bundles":${JSON.stringify({ kubelet: { revision: policyVersion } })}`,
    `"path":${JSON.stringify(`nodewise/${kind}`)}`,
    ...(erased[0] === INPUT ? [] : [`"input":{${input.join(",")}}`]),
    `"result":${JSON.stringify({ verdict, reason }).slice(0, -1)},${body.slice(1)}`,
    `"timestamp":${JSON.stringify(rfc3339(decidedAtMs))}`,
    `"custom":${JSON.stringify({ kind, node, verdict, reason, pod, snapshotId })}`,
  ];
  const text = (all: readonly string[]): string =>
    `{${[...members, ...(all.length === 0 ? [] : [`"erased":${JSON.stringify(all)}`])].join(",")}}`;
  return deeper.length === 0 ? ok(text(erased)) : withErased(text(erased), erased, deeper);
}

function withErased(text: string, erased: readonly string[], pointers: readonly string[]): Result<string, string> {
  let event: Record<string, unknown>;
  try {
    event = JSON.parse(text);
  } catch {
    return err("what is stored of it is not JSON; restore the database from a backup");
  }
  const gone = pointers.filter((pointer) => remove(event, pointer));
  const all = [...erased, ...gone];
  return ok(JSON.stringify(all.length === 0 ? event : { ...event, erased: all }));
}

/** Removes a member; returns whether it existed. */
function remove(event: object, pointer: string): boolean {
  const names = pointer
    .slice(1)
    .split("/")
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  const last = names.pop() as string;
  let at: unknown = event;
  for (const name of names) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return false;
    at = (at as Readonly<Record<string, unknown>>)[name];
  }
  if (!isObject(at) || !Object.hasOwn(at, last)) return false;
  return Reflect.deleteProperty(at, last);
}
