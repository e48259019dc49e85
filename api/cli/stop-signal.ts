/** Ctrl-C in a terminal reaches the launcher and its child, so one keystroke may come twice. */
const SAME_KEYSTROKE_MS = 500;
/** What shells make of SIGINT. */
const INTERRUPTED = 130;

const ENDING: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];

/** Settles at the first of these signals; a later one ends the process at once. */
export function stopSignal(signals = ENDING): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first: number | undefined;
    const onSignal = (signal: NodeJS.Signals): void => {
      const now = performance.now();
      first ??= now;
      if (now - first > SAME_KEYSTROKE_MS) process.exit(INTERRUPTED);
      resolve(signal);
    };
    for (const signal of signals) process.on(signal, onSignal);
  });
}
