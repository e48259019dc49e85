import type { Store } from "../../db/store.ts";
import type { EpochMs } from "../model/units.ts";
import { errorFields, type Log } from "../observe/log.ts";
import { pruneOnce, type Retention } from "../retention.ts";

const EVERY_MS = 10 * 60 * 1000;

/** Prunes now and every ten minutes. */
export function keepPruned(
  store: Store,
  now: () => EpochMs,
  log: Log,
  retention?: Partial<Retention>,
): { stop(): void } {
  let running = false;
  const prune = async (): Promise<void> => {
    if (running) return;
    running = true;
    try {
      await pruneOnce(store, now(), log, retention);
    } catch (error) {
      log.error(errorFields(error), "internal fault");
    }
    running = false;
  };
  const timer = setInterval(prune, EVERY_MS);
  timer.unref();
  void prune();
  return { stop: () => clearInterval(timer) };
}
