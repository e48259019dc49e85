import { err, type Result } from "../../../api/model/result.ts";
import type { Problem } from "../../ports.ts";
import type { PodClock } from "../clock.ts";
import { DEVICE_CHECKPOINT, type ManagerFiles } from "../manager-files.ts";
import type { DeviceBook } from "./book.ts";
import { settleBoot } from "./boot.ts";
import { dropOldCopies, keepBroken } from "./broken-copy.ts";
import type { DeviceFault } from "./port.ts";
import { notKept } from "./words.ts";

export interface UpkeepPorts {
  readonly book: DeviceBook;
  readonly files: ManagerFiles;
  readonly clock: Pick<PodClock, "nowMs" | "monotonicMs">;
  /** Of the machine; empty: not known. */
  readonly bootId: string;
}
/** A checkpoint that could not be read is spoken of so long: it is written anew within seconds. */
const STANDS_MS = 10 * 60_000;
const COPIES_MS = 60 * 60_000;

/** The checkpoint on the disk: of this boot, written or told of, and what became of one that could not be read. */
export class CheckpointUpkeep {
  readonly #ports: UpkeepPorts;
  readonly #startedMs: number;
  #copiesMs = Number.NEGATIVE_INFINITY;
  /** What plugins answered is of this boot. */
  #isOfThisBoot = false;
  /** Why it is not known to be; null: it is. */
  #fault: string | null = null;
  /** A sentence about one that could not be read at the start; null: it could. */
  readonly broken: string | null;

  /** One that cannot be read is put aside at once. */
  constructor(ports: UpkeepPorts) {
    this.#ports = ports;
    this.#startedMs = ports.clock.monotonicMs();
    this.broken = keepBroken(ports.book);
  }

  /** Null: answers of plugins may be used. */
  settleBoot(): Result<never, DeviceFault> | null {
    if (this.#isOfThisBoot) return null;
    const settled = settleBoot(this.#ports.book, this.#ports.bootId);
    this.#isOfThisBoot = settled.ok;
    this.#fault = settled.ok ? null : settled.error;
    return settled.ok ? null : err(notKept(settled.error));
  }
  /** Once a turn. True: what could not be written can be now. */
  look(): boolean {
    const { book, files, clock } = this.#ports;
    const nowMs = clock.monotonicMs();
    if (nowMs - this.#copiesMs >= COPIES_MS) {
      this.#copiesMs = nowMs;
      dropOldCopies(book, clock.nowMs());
    }
    return files.tryAgain();
  }
  /** Why nothing more can be booked now; null: it can. */
  whyNot(): DeviceFault | null {
    const why = this.#ports.files.unwritten(DEVICE_CHECKPOINT);
    return why === undefined ? null : notKept(why);
  }

  problems(): readonly Problem[] {
    const { book, files, clock } = this.#ports;
    // while it lies there still, that is told with what follows from it
    const isTold = book.fault() === null && clock.monotonicMs() - this.#startedMs < STANDS_MS;
    const broken = this.broken !== null && isTold ? [this.broken] : [];
    const messages = new Set([...broken, ...files.unwrittenAll(), ...(this.#fault === null ? [] : [this.#fault])]);
    return [...messages].map((message) => ({ from: "state-files", message }));
  }
}
