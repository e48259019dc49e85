import type { Result } from "../../api/model/result.ts";
import type { RuntimeFault } from "./port.ts";

/** A runtime answers no sooner when it is asked more at a time. */
const AT_ONCE = 32;

/** Asks about each; the first fault that `ask` returns ends it, and is returned. */
export async function askEach<T>(
  items: Iterable<T>,
  ask: (item: T) => Promise<RuntimeFault | undefined>,
): Promise<RuntimeFault | undefined> {
  let fault: RuntimeFault | undefined;
  const queue = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = queue.next(); !next.done && fault === undefined; next = queue.next()) {
      const failed = await ask(next.value);
      fault ??= failed;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return fault;
}

/** Null where the thing that was asked about is not there. */
export async function nullIfGone<T>(asked: Promise<Result<T, RuntimeFault>>): Promise<Result<T | null, RuntimeFault>> {
  const answer = await asked;
  return !answer.ok && answer.error.code === "NOT_FOUND" ? { ok: true, value: null } : answer;
}
