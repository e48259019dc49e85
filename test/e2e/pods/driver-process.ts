import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { NodeOperation } from "../../../api/decide/dra/claim-info.ts";
import { DRIVER } from "../../kit/claims.ts";
import type { PodNode } from "./node.ts";
import { holds, until } from "./until.ts";

/** The driver's fault instead of its answer. "hangs": it has done nothing yet. */
export type DriverFault =
  | "hangs"
  | "hangs when it has done it"
  | "names another claim"
  | "leaves the claim out"
  | "has a million devices"
  | "has no CDI device of that name";
export type DriverFaults = Partial<Record<NodeOperation, DriverFault>>;
export interface Call {
  readonly operation: NodeOperation;
  /** The names of the claims. */
  readonly claims: readonly string[];
}

/** A DRA driver as a separate process in the node's plugins_registry, which can be killed and started again. */
export class DriverProcess {
  readonly name: string;
  readonly #dir: string;
  readonly #registry: string;
  #child: ChildProcess | undefined;

  constructor(node: PodNode, name = DRIVER) {
    this.name = name;
    this.#dir = join(node.dir, `driver-${name}`);
    this.#registry = join(node.dir, "registry");
    for (const dir of [this.#dir, this.#registry]) mkdirSync(dir, { recursive: true });
  }
  start(): void {
    const file = join(import.meta.dirname, "driver-child.ts");
    this.#child = spawn(process.execPath, [file, this.#dir, this.#registry, this.name], {
      stdio: ["pipe", "inherit", "inherit"],
    });
  }
  /** Kills the driver with SIGKILL; its socket remains. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }
  /** Sets the faults of all later calls, also of a restarted driver. */
  setFaults(faults: DriverFaults): void {
    const fresh = join(this.#dir, ".fresh");
    writeFileSync(fresh, JSON.stringify(faults));
    renameSync(fresh, join(this.#dir, "faults.json"));
  }

  /** All calls that it received, in order. */
  get calls(): readonly Call[] {
    const file = join(this.#dir, "calls");
    const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
    return lines.slice(0, -1).map((line) => JSON.parse(line) as Call);
  }
  /** The uids of the claims that are currently prepared. */
  get prepared(): readonly string[] {
    const dir = join(this.#dir, "prepared");
    return existsSync(dir) ? readdirSync(dir).sort() : [];
  }
  /** The calls about a claim, in order. */
  callsOf(claim: string): readonly NodeOperation[] {
    return this.calls.filter(({ claims }) => claims.includes(claim)).map(({ operation }) => operation);
  }
  /** Resolves when the driver has received the next call of this operation. */
  async asked(operation: NodeOperation): Promise<void> {
    const before = this.#count(operation);
    await until(`${this.name}: ${operation}`, () => holds(this.#count(operation) > before));
  }
  #count(operation: NodeOperation): number {
    return this.calls.filter((call) => call.operation === operation).length;
  }
}
