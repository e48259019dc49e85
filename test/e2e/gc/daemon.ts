import type { CollectionReport, GcReport, RemovalReport } from "../../../actuator/gc/dependencies.ts";
import type { GcKind } from "../../../actuator/gc/journal.ts";
import type { ImageGcDecision } from "../../../api/model/image-gc.ts";
import { DaemonChild } from "../daemon-child.ts";

/** Generous, for a machine that is slow and loaded. */
const WAIT_MS = 120_000;

/** A daemon that collects garbage, and its output. */
export class GcDaemon extends DaemonChild {
  readonly turns: GcReport[] = [];
  /** The removals in the order of their reports, including those of a turn that did not finish. */
  readonly removals: RemovalReport[] = [];
  /** The last line of each form; the key is the line's first member. */
  readonly lines = new Map<string, string>();
  #waiting: (() => void)[] = [];
  #stderr = "";

  constructor(args: readonly string[]) {
    super(["-o", "json", ...args], "stdout");
    this.child.stderr.on("data", (chunk: Buffer) => {
      this.#stderr += chunk;
      this.#wake();
    });
    this.child.on("close", () => this.#wake());
  }

  get stderr(): string {
    return this.#stderr;
  }

  /** Waits until `find` returns a result. `find` is called again whenever the daemon prints something. */
  async until<T>(what: string, find: () => T | undefined): Promise<T> {
    const deadline = AbortSignal.timeout(WAIT_MS);
    deadline.addEventListener("abort", () => this.#wake());
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      if (this.isEnded || deadline.aborted)
        throw new Error(`${this.isEnded ? "the daemon has ended" : "waited too long"} for ${what}: ${this.#report()}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#waiting.push(resolve);
      await promise;
    }
  }

  /**
   * The first turn with an image pass that began after that moment (default: now), so that it saw everything that was
   * done before.
   */
  nextTurn(afterMs = Date.now()): Promise<GcReport> {
    const hasImages = ({ collections }: GcReport): boolean => collections.some(({ kind }) => kind === "image-gc");
    return this.until("a turn", () => this.turns.find((turn) => Date.parse(turn.at) > afterMs && hasImages(turn)));
  }

  /** The collections of the finished turns that read the runtime's lists at or after `sinceMs`. */
  collections(kind: GcKind, sinceMs: number): readonly CollectionReport[] {
    const all = this.turns.flatMap(({ collections }) => collections);
    return all.filter((one) => one.kind === kind && Date.parse(one.at) >= sinceMs);
  }

  /** The first collection that read the runtime's lists at or after `sinceMs` and had something to remove. */
  collection(kind: GcKind, sinceMs: number): Promise<CollectionReport> {
    const hasWork = (one: CollectionReport): boolean => one.removals.length > 0;
    return this.until(`a collection (${kind})`, () => this.collections(kind, sinceMs).find(hasWork));
  }

  protected override read(line: string): void {
    const reported = JSON.parse(line) as { collection?: GcReport; removal?: RemovalReport };
    const { collection, removal } = reported;
    this.lines.set(Object.keys(reported)[0] ?? "", line);
    if (collection !== undefined) this.turns.push(collection);
    if (removal !== undefined) this.removals.push(removal);
    this.#wake();
  }
  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
  #report(): string {
    const last = this.turns.at(-1);
    const short = last && {
      ...last,
      reclaim: last.reclaim?.ran,
      collections: last.collections.map(({ answer: _, ...rest }) => rest),
    };
    return `${this.turns.length} turns, the last ${JSON.stringify(short)}; ${this.#stderr}`;
  }
}

/** The names of the removed images or containers, in order. */
export const removedBy = ({ removals }: CollectionReport): readonly string[] =>
  removals.filter(({ end }) => end === "removed").map(({ name }) => name);
export const imageDecision = ({ answer }: CollectionReport): ImageGcDecision => answer?.decision as ImageGcDecision;
