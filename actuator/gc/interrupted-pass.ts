import type { Done } from "../../api/model/container-gc.ts";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { DecisionAnswer, Problem } from "../core/ports.ts";
import type { Entry, GcKind, InterruptedPass } from "./journal.ts";
import type { GcPorts } from "./ports.ts";
import { isGone } from "./remove.ts";

/** A pass that a crash cut short, as it ended after all. */
export interface ClosedPass {
  readonly kind: GcKind;
  readonly done: readonly Done[];
  /** Objects whose removal was begun and which are still there: they count as not tried. */
  readonly left: readonly string[];
  readonly answer: DecisionAnswer;
}

/**
 * Tells and remembers what a pass did that never came to its end, and removes nothing. Null: there is none. Errors: the
 * runtime cannot say what is there, or nothing can be decided; nothing else may be removed before.
 */
export async function closeInterruptedPass(ports: GcPorts): Promise<Result<ClosedPass | null, Problem>> {
  const { journal, client } = ports;
  const found = journal === null ? ok(null) : journal.unclosed();
  if (!found.ok)
    return err({ from: "journal", message: `${found.error.message}; nothing is removed until it can be read` });
  const pass = found.value;
  if (pass === null) return ok(null);
  const looked = await findOutcome(pass, ports);
  if (!looked.ok) return err({ from: "runtime", message: `a pass that was cut short: ${looked.error}` });
  const { done, left } = looked.value;
  const { kind, operation, snapshot, fileSystem } = pass;
  const space = fileSystem === null ? {} : { fileSystem };
  const answer = await client.decide(kind, snapshot, { operation, done, ...space });
  // what will never be taken would keep everything from being collected
  if (answer.ok) await client.commit(answer.value);
  const closed = journal?.close();
  if (closed?.ok === false)
    return err({ from: "journal", message: `${closed.error.message}; nothing is removed until it can be written` });
  return answer.ok ? ok({ kind, done, left, answer: answer.value }) : answer;
}

async function findOutcome(
  { done, unknown }: InterruptedPass,
  ports: GcPorts,
): Promise<Result<{ readonly done: readonly Done[]; readonly left: readonly string[] }, string>> {
  const all = [...done];
  const left: string[] = [];
  for (const entry of unknown) {
    const found = await isGone(entry, ports);
    if (!found.ok) return found;
    if (!found.value) left.push(entry.id);
    else all.push({ ...refOf(entry), end: "removed", message: "found gone after a restart" });
  }
  return ok({ done: all, left });
}
const refOf = ({ id, runtimeHandler }: Entry) => (runtimeHandler === "" ? { id } : { id, runtimeHandler });
