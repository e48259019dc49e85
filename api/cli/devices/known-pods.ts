import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { ownFolder, replaceText } from "../../../actuator/core/record-file.ts";
import { PodRecords } from "../../../actuator/pods/records/records.ts";
import { err, ok, type Result } from "../../model/result.ts";

const knownPod = z.object({
  namespace: z.string(),
  name: z.string(),
  uid: z.string(),
  /** The calls that plugins want before its containers start are made. */
  isReady: z.boolean(),
  /** The v1.Pod. */
  pod: z.record(z.string(), z.unknown()),
});
/** A pod that was given devices by hand. */
export type KnownPod = z.output<typeof knownPod>;
const content = z.object({ version: z.literal(1), pods: z.array(knownPod) });

/**
 * The pods of a state directory that may hold devices: those that were given some by hand, in a file of their own, and those
 * of the daemon's records. INVARIANT: a pod is known before it holds anything.
 */
export class KnownPods {
  readonly #file: string;
  readonly #byHand: Map<string, KnownPod>;
  /** The daemon's pods: uid -> the v1.Pod. */
  readonly ofDaemon: ReadonlyMap<string, Readonly<Record<string, unknown>>>;

  private constructor(file: string, pods: readonly KnownPod[], ofDaemon: KnownPods["ofDaemon"]) {
    this.#file = file;
    this.#byHand = new Map(pods.map((pod) => [pod.uid, pod]));
    this.ofDaemon = ofDaemon;
  }

  /** Errors: what cannot be read, since the devices of its pods would be given to others. */
  static open(stateDir: string): Result<KnownPods, string> {
    const file = join(stateDir, "device-pods.json");
    const read = readByHand(file);
    if (!read.ok) return read;
    const ofDaemon = readRecords(join(stateDir, "pods"));
    return ofDaemon.ok ? ok(new KnownPods(file, read.value, ofDaemon.value)) : ofDaemon;
  }

  get byHand(): ReadonlyMap<string, KnownPod> {
    return this.#byHand;
  }
  /** The v1.Pods but one. */
  objectsBut(uid: string): readonly unknown[] {
    const all = [...this.ofDaemon, ...[...this.#byHand].map(([other, { pod }]) => [other, pod] as const)];
    return [...new Map(all)].filter(([other]) => other !== uid).map(([, pod]) => pod);
  }
  get uids(): ReadonlySet<string> {
    return new Set([...this.ofDaemon.keys(), ...this.#byHand.keys()]);
  }

  /** On the disk when it succeeds. */
  put(pod: KnownPod): Result<null, string> {
    return this.#write(new Map(this.#byHand).set(pod.uid, pod));
  }
  remove(uid: string): Result<null, string> {
    return this.#write(new Map([...this.#byHand].filter(([other]) => other !== uid)));
  }

  #write(pods: ReadonlyMap<string, KnownPod>): Result<null, string> {
    try {
      ownFolder(join(this.#file, ".."));
      const text = { version: 1, pods: [...pods.values()] } satisfies z.input<typeof content>;
      replaceText(this.#file, `${JSON.stringify(text)}\n`);
    } catch (error) {
      return err(`${this.#file}: ${(error as Error).message}`);
    }
    this.#byHand.clear();
    for (const [uid, pod] of pods) this.#byHand.set(uid, pod);
    return ok(null);
  }
}

function readByHand(file: string): Result<readonly KnownPod[], string> {
  try {
    const read = content.safeParse(JSON.parse(readFileSync(file, "utf8")));
    if (read.success) return ok(read.data.pods);
    const [issue] = read.error.issues;
    return err(`${file}: ${issue?.path.join(".") || "the whole"}: ${issue?.message ?? ""}: ${MEND}`);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? ok([]) : err(`${file}: ${message}: ${MEND}`);
  }
}
const MEND =
  "devices of pods that it names would be given away: mend it, or remove it if none of them is there any more";

/** Those that have not ended, and may so hold devices. */
function readRecords(directory: string): Result<KnownPods["ofDaemon"], string> {
  if (!existsSync(directory)) return ok(new Map());
  const problems: string[] = [];
  const records = PodRecords.open(directory, (message) => problems.push(message));
  if (!records.ok) return records;
  const [problem] = problems;
  if (problem !== undefined)
    return err(`${problem}, and the devices of its pod would be given away: mend or remove it`);
  const living = [...records.value.entries()].filter(([, { state }]) => state === "active" || state === "terminating");
  return ok(new Map(living.map(([uid, { pod }]) => [uid, pod])));
}
