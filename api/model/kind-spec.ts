import type * as z from "zod";
import type { InputIssue } from "../base/input-issue.ts";
import { err, ok, type Result } from "../base/result.ts";
import type { PodRef } from "./forms.ts";

/** Checks a part of what a caller posts and parses it once. Errors: every issue with its path. */
type Decode<A> = (input: unknown, at: string) => Result<A, readonly InputIssue[]>;

/** The form of a kind's ask, beside the snapshot. */
export interface AskSpec {
  readonly decode: Decode<unknown>;
  /**
   * The ask's name in the OpenAPI document and its form; `facts` is added for kinds that have facts. Null: nothing is
   * asked.
   */
  readonly schema: { readonly name: string; readonly form: z.ZodObject } | null;
  /** The form of `ask.pod`. `object`: a v1.Pod or a name; `name`: only NAMESPACE/NAME of a pod in the snapshot. */
  readonly pod: "none" | "object" | "name";
}

/**
 * The facts that a kind remembers about a node: the `next` of its answer, which the next question contains as
 * `ask.facts`.
 */
interface FactsSpec {
  readonly form: z.ZodType;
  readonly decode: Decode<unknown>;
  /** True: a reboot of the node ends them. Facts about images survive, since images are on disk. */
  readonly forgottenAtBoot: boolean;
  /**
   * Whether `next` was made without the facts that are remembered `here`. Posted facts that know at least as much are
   * adopted, since a node's daemon may know more than a new or emptied history. Absent: posted facts count only for
   * their question.
   */
  knowsLess?(next: unknown, here: unknown): boolean;
  /** True: if the runtime's lists are posted, it also reads the facts of `image-gc`, as `ask.images`. */
  readonly readsImages: boolean;
}

/** The differences between kinds that matter to callers, servers and recorders. */
export interface KindTraits {
  /**
   * The parts of pods that it reads, each word including those before it. `nothing`: pods do not matter; `requests`:
   * requests that decoding filled in are reported; `overhead`: a missing overhead of a RuntimeClass is among the
   * answer's needs.
   */
  readonly pods: "nothing" | "identity" | "requests" | "overhead";
  /** True: its answer depends on neither a clock nor usage, so it stays the same while the node does. */
  readonly cacheable: boolean;
  /** True: it needs a time; if only stats are given, the command line uses the latest time in them. */
  readonly needsTime: boolean;
  /** False: the ask alone is enough. */
  readonly needsSnapshot: boolean;
  /** True: without a configuration it uses the kubelet's defaults, and the answer says so. */
  readonly defaultsConfiguration: boolean;
  /**
   * Its relation to the resource managers (CPU, memory, device, topology). `asked`: they affect its answer; `itself`:
   * it is the answer of one of them. With both, `next` has state files for the node.
   */
  readonly managers: "none" | "asked" | "itself";
  /** The field of the KubeletConfiguration that chooses between the policies of its own manager. */
  readonly policy: { readonly field: string; readonly values: readonly string[] } | null;
  /**
   * Whether it silently assumes a node without devices if none are posted. `unlisted`: except for devices that the
   * node's status lists.
   */
  readonly assumesNoDevices: "never" | "always" | "unlisted";
  /** True: its decision lists removals, each of which has a row in the history. */
  readonly removes: boolean;
  /**
   * The question of a what-if to it, before and after the change. `admission`: whether a pod is admitted, before all
   * other kinds; `placement`: which CPUs, memory and devices a pod would get; `resize`: the resize that is the
   * change; `node`: the node; `node-with-pod`: the node once an admitted pod runs.
   */
  readonly whatIf: "admission" | "placement" | "resize" | "node" | "node-with-pod" | "not-asked";
  /** The source from which a node's page draws it: a decision on the newest snapshot, or the history. */
  readonly nodePage: "snapshot" | "history" | "not-drawn";
  /** Whether `nodewise up` asks it about a node's snapshot: for the terminal and the dashboard, or for the dashboard alone. */
  readonly up: "printed" | "recorded" | "not-asked";
  /** The kubelet's endpoints, and the pods, that a collector must have read before it asks it of a node; null: it does not ask it. */
  readonly collected: readonly ("configz" | "stats" | "pods")[] | null;
}

/** A decision's effect on one pod, in any form; null: no pod's. */
export interface PodPart {
  readonly pod: PodRef | null;
}

/** A place where two decisions of a kind differ; an absent side has no value. */
export interface PlaceDifference {
  readonly path: string;
  readonly recorded?: unknown;
  readonly replayed?: unknown;
}

/**
 * Everything about a decision kind except its decider (`api/decide/kinds/index.ts`) and its table
 * (`api/text/tables/index.ts`).
 */
export interface KindSpec {
  /** What the kind decides, in one line for people: `nodewise kinds`. */
  readonly decides: string;
  readonly ask: AskSpec;
  /** The form of the decision. */
  readonly decision: z.ZodType;
  /** The codes of its reasons. */
  readonly reasons: readonly string[];
  /**
   * The one word for the decision's outcome, as the kubelet writes it into the pod's status or an event, so that
   * decisions can be found by it; null: this one has none. Absent: the kind has none.
   */
  reasonOf?(decision: never): string | null;
  /**
   * The summary of a decision for lists and metrics of all nodes. `passAtMs`: the snapshot's time; null: not known.
   * Absent: the verdict is enough.
   */
  summaryOf?(decision: never, passAtMs: number | null): unknown;
  /**
   * The effects of a node's decision on its pods: two decisions differ for the pods whose parts differ. Absent: only
   * the asked pod is affected.
   */
  podPartsOf?(decision: never): readonly PodPart[];
  /**
   * Whether a difference has no effect on the node: one decision writes the kernel's default. Absent: every difference
   * has one.
   */
  hasNoEffect?(difference: PlaceDifference): boolean;
  /** The facts; null: the kind remembers nothing. */
  readonly facts: FactsSpec | null;
  readonly traits: KindTraits;
}

const decodeNothing: Decode<undefined> = (input, at) =>
  input === undefined || input === null
    ? ok(undefined)
    : err([{ path: at, message: "this kind takes no ask; leave it out" }]);
/** The ask of a kind without a question. */
export const nothingAsked = { decode: decodeNothing, schema: null, pod: "none" } as const satisfies AskSpec;

/** The traits that most kinds have; a spec names those in which it differs, and who asks it unasked, which each has to say. */
export const PLAIN = {
  pods: "identity",
  cacheable: false,
  needsTime: false,
  needsSnapshot: true,
  defaultsConfiguration: false,
  managers: "none",
  policy: null,
  assumesNoDevices: "never",
  removes: false,
} as const satisfies Partial<KindTraits>;
