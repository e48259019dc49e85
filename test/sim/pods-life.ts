import { AsyncLocalStorage } from "node:async_hooks";

/** The kinds of effects that a daemon has; it can be killed at each of them. */
export type Effect = "file" | "cgroup" | "runtime";

/** A killed process does nothing more: synchronous calls throw this error, and asynchronous calls never return. */
export class KilledDaemon extends Error {}

export interface DeathPlan {
  readonly effect: Effect;
  /** The number of effects that still succeed. */
  readonly after: number;
  /** The last effect takes place, but the daemon does not get its result. */
  readonly isDone: boolean;
}

/**
 * One run of a daemon, from its start to its end. Everything that is called within `run`, however late, belongs to it.
 */
export class Life {
  isOver = false;
  readonly ended: Promise<void>;
  #end: () => void = () => {};
  #plan: DeathPlan | null = null;
  #left = 0;

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  run<T>(work: () => T): T {
    return lives.run(this, work);
  }
  kill(): void {
    this.isOver = true;
    this.#end();
  }
  diesAt(plan: DeathPlan): void {
    this.#plan = plan;
    this.#left = plan.after;
  }

  /** Called before an effect: whether it takes place, and whether the daemon survives it. */
  next(effect: Effect): { readonly does: boolean; readonly lives: boolean } {
    if (this.isOver) return { does: false, lives: false };
    if (this.#plan?.effect !== effect || this.#left-- > 0) return { does: true, lives: true };
    this.kill();
    return { does: this.#plan.isDone, lives: false };
  }
}

const lives = new AsyncLocalStorage<Life>();
/** The run to which the currently running code belongs; undefined: the code belongs to the test. */
export const currentLife = (): Life | undefined => lives.getStore();

/** Carries out a synchronous effect. */
export function guarded<T>(effect: Effect, act: () => T): T {
  const life = currentLife();
  if (life === undefined) return act();
  const { does, lives } = life.next(effect);
  if (lives) return act();
  // the dead daemon does not get the result
  if (does) Promise.resolve(act()).catch(() => {});
  throw new KilledDaemon(`at a ${effect}`);
}

export const never = <T>(): Promise<T> => new Promise(() => {});

/** The number of running operations of the real machine: simulated time stands still during them. */
export const machineWork = { count: 0 };
export async function counted<T>(work: () => Promise<T>): Promise<T> {
  machineWork.count++;
  try {
    return await work();
  } finally {
    machineWork.count--;
  }
}
