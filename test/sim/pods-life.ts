import { AsyncLocalStorage } from "node:async_hooks";

/** The effects of a daemon on the world, at each of which it can be killed. */
export type Effect = "file" | "cgroup" | "runtime";

/** A killed process does nothing more: thrown where nobody waits, and nothing ever comes back where somebody does. */
export class KilledDaemon extends Error {}

export interface DeathPlan {
  readonly effect: Effect;
  /** So many more of them go well. */
  readonly after: number;
  /** The last one comes about, but the daemon does not live to see it. */
  readonly isDone: boolean;
}

/** One run of a daemon, from its start to its end; what is called within `run`, however late, belongs to it. */
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

  /** An effect is about to come about: whether it does, and whether its daemon lives on. */
  next(effect: Effect): { readonly does: boolean; readonly lives: boolean } {
    if (this.isOver) return { does: false, lives: false };
    if (this.#plan?.effect !== effect || this.#left-- > 0) return { does: true, lives: true };
    this.kill();
    return { does: this.#plan.isDone, lives: false };
  }
}

const lives = new AsyncLocalStorage<Life>();
/** The owner of the code that runs now; undefined: the test itself. */
export const currentLife = (): Life | undefined => lives.getStore();

/** An effect that nobody waits for. */
export function guarded<T>(effect: Effect, act: () => T): T {
  const life = currentLife();
  if (life === undefined) return act();
  const { does, lives } = life.next(effect);
  if (lives) return act();
  // how it ended, nobody hears any more
  if (does) Promise.resolve(act()).catch(() => {});
  throw new KilledDaemon(`at a ${effect}`);
}

export const never = <T>(): Promise<T> => new Promise(() => {});

/** Work of the machine itself that is under way: simulated time stands still for it. */
export const machineWork = { count: 0 };
export async function counted<T>(work: () => Promise<T>): Promise<T> {
  machineWork.count++;
  try {
    return await work();
  } finally {
    machineWork.count--;
  }
}
