import type { ChildProcess } from "node:child_process";
import { once } from "node:events";

/**
 * Sends a question to another process of the benchmark and returns its answer. Rejects if the process exits instead of
 * answering.
 */
export function asked<T>(child: ChildProcess, question: object = {}): Promise<T> {
  child.send(question);
  return nextMessage(child) as Promise<T>;
}

/** The next message of the process. Rejects if the process exits instead. */
export async function nextMessage(child: ChildProcess): Promise<unknown> {
  const life = new AbortController();
  const ended = once(child, "exit", { signal: life.signal }).then(([code, signal]) => {
    throw new Error(`a process of the bench ended: ${code ?? signal}`);
  });
  try {
    return (await Promise.race([once(child, "message", { signal: life.signal }), ended]))[0];
  } finally {
    ended.catch(() => undefined);
    life.abort();
  }
}
