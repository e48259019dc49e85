/** Ctrl-C in a terminal reaches the launcher and its child, so one keystroke may come twice. */
const SAME_KEYSTROKE_MS = 500;
/** What shells make of SIGINT. */
const INTERRUPTED = 130;

/**
 * Settles at the first SIGINT, SIGTERM or SIGHUP; a later one ends the process at once. With `onHangUp` SIGHUP ends nothing.
 */
export function stopSignal(onHangUp?: () => void): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let first: number | undefined;
    const onSignal = (signal: NodeJS.Signals): void => {
      const now = performance.now();
      first ??= now;
      if (now - first > SAME_KEYSTROKE_MS) process.exit(INTERRUPTED);
      resolve(signal);
    };
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, onSignal);
    process.on("SIGHUP", onHangUp ?? onSignal);
  });
}
