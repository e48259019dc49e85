import { setTimeout as sleep } from "node:timers/promises";
import { ok, type Result } from "../../model/result.ts";
import { printable } from "../../text/style.ts";
import type { Cli } from "../cli.ts";
import { EXIT, type Fault, type Form, type Outcome, stopSignal, type Terminal } from "../terminal.ts";
import type { ReadStatus, StatusRead } from "./read-status.ts";

type Draw = (seen: StatusRead, terminal: Terminal) => Result<null, Fault>;
interface Often {
  /** Seconds; absent: once. */
  readonly watch?: number;
  readonly output: Form;
}

/**
 * Reads and draws once, or again and again until a signal. What fails the first time ends the command; later, it is told
 * in the place of the picture, and tried again.
 */
export async function showOften(read: ReadStatus, { watch, output }: Often, cli: Cli, draw: Draw): Promise<Outcome> {
  const { terminal } = cli;
  const seen = await read();
  if (!seen.ok) return seen;
  if (watch === undefined) {
    const drawn = draw(seen.value, terminal);
    return drawn.ok ? ok(EXIT.ok) : drawn;
  }
  const stopping = new AbortController();
  void stopSignal().then(() => stopping.abort());
  for (
    let now: Result<StatusRead, Fault> = seen, isFirst = true;
    !stopping.signal.aborted;
    now = await read(), isFirst = false
  ) {
    const picture = new Picture(terminal, output, isFirst);
    const drawn = now.ok ? draw(now.value, picture) : now;
    if (!drawn.ok && isFirst) return drawn;
    picture.show(drawn.ok ? [] : drawn.error.lines);
    await sleep(watch * 1000, undefined, { signal: stopping.signal }).catch(() => {});
  }
  return ok(EXIT.ok);
}

/** On a terminal each picture takes the place of the last, and is cut to its height; elsewhere they follow each other. */
class Picture implements Terminal {
  readonly columns: number;
  readonly paint: Terminal["paint"];
  readonly #terminal: Terminal;
  readonly #output: Form;
  readonly #isFirst: boolean;
  #text = "";

  constructor(terminal: Terminal, output: Form, isFirst: boolean) {
    this.columns = terminal.columns;
    this.paint = terminal.paint;
    this.#terminal = terminal;
    this.#output = output;
    this.#isFirst = isFirst;
  }
  write(text: string): void {
    this.#text += text;
  }
  warn(line: string): void {
    this.#terminal.warn(line);
  }
  show(faults: readonly string[]): void {
    if (this.#output !== "table" || !process.stdout.isTTY) {
      for (const line of faults) this.warn(`nodewise: ${line}`);
      const between = this.#isFirst || this.#text === "" ? "" : BETWEEN[this.#output];
      this.#terminal.write(between + this.#text);
      return;
    }
    const text = this.#text + faults.map((line) => this.paint("red", `${printable(line)}\n`)).join("");
    this.#terminal.write(screenOf(text, process.stdout.rows));
  }
}
/** JSON documents need nothing between them. */
const BETWEEN: Readonly<Record<Form, string>> = { table: "\n", json: "", yaml: "---\n" };

/** From the upper left corner on: each line ends in clearing its rest, and what is below is cleared. */
export function screenOf(text: string, rows: number): string {
  const lines = text.trimEnd().split("\n");
  const room = Math.max(2, rows - 1);
  const shown = lines.length <= room ? lines : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines`];
  return `\u001b[H${shown.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`;
}
