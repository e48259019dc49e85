import type * as z from "zod";
import type { PodRef } from "./forms.ts";
import type { InputIssue } from "./input-issue.ts";
import { err, ok, type Result } from "./result.ts";

/** Checks a part of what a caller posts and parses it once. Errors: every issue with its path. */
type Decode<A> = (input: unknown, at: string) => Result<A, readonly InputIssue[]>;

/** The question to a kind, beside the snapshot. */
export interface AskSpec {
  readonly decode: Decode<unknown>;
  /** Its name in the OpenAPI document and its form, which `facts` joins where the kind has any. Null: nothing is asked. */
  readonly schema: { readonly name: string; readonly form: z.ZodObject } | null;
  /** The form of `ask.pod`. `object`: a v1.Pod, or a name; `name`: only NAMESPACE/NAME of a pod of the snapshot. */
  readonly pod: "none" | "object" | "name";
}

/** The facts that a kind remembers of a node: the `next` of its answer, which the next question holds as `ask.facts`. */
interface FactsSpec {
  readonly form: z.ZodType;
  readonly decode: Decode<unknown>;
  /** True: a boot of the node ends them. Images lie on the disk, and what is learnt of them goes on. */
  readonly forgottenAtBoot: boolean;
  /**
   * Checks that `next` was made without what is remembered `here`. Posted facts that know no less are adopted, since a node's
   * daemon may know more than a new or emptied history. Absent: posted facts count for their question alone.
   */
  knowsLess?(next: unknown, here: unknown): boolean;
  /** True: where the runtime's lists are posted it also reads the facts of `image-gc`, as `ask.images`. */
  readonly readsImages: boolean;
}

/** The ways in which kinds differ for those who ask, serve and record. */
export interface KindTraits {
  /**
   * The parts of pods that it looks at, each word with all before it. `nothing`: it is all the same whose pods are posted;
   * `requests`: those that decoding filled in are told; `overhead`: one of a RuntimeClass that is not known is among the answer's needs.
   */
  readonly pods: "nothing" | "identity" | "requests" | "overhead";
  /** True: its answer stays the same while the node does, since neither a clock nor usage is among what it reads. */
  readonly cacheable: boolean;
  /** True: it decides nothing without a time; where only stats are given, people are helped out with the latest in them. */
  readonly needsTime: boolean;
  /** False: the ask alone is enough. */
  readonly needsSnapshot: boolean;
  /** True: it answers by the kubelet's defaults where no configuration is given, and people are told so. */
  readonly defaultsConfiguration: boolean;
  /**
   * Its relation to the resource managers (CPU, memory, device, topology). `asked`: they have a say in its answer; `itself`:
   * it is the answer of one of them. With both, `next` holds state files for the node.
   */
  readonly managers: "none" | "asked" | "itself";
  /** The field of the KubeletConfiguration that chooses between the policies of its own manager. */
  readonly policy: { readonly field: string; readonly values: readonly string[] } | null;
  /**
   * Whether it decides as on a node without devices where none are posted, and does not say so. `unlisted`: it does, but for the
   * devices that the node's status lists.
   */
  readonly assumesNoDevices: "never" | "always" | "unlisted";
  /** True: its decision lists removals, each of which has a row of its own in the history. */
  readonly removes: boolean;
  /**
   * What a what-if asks it, before and after the change. `admission`: whether a pod comes in, before all others; `placement`: which
   * CPUs, memory and devices a pod would get; `resize`: the resize that is the change; `node`: the node; `node-with-pod`: the node
   * once an admitted pod runs.
   */
  readonly whatIf: "admission" | "placement" | "resize" | "node" | "node-with-pod" | "not-asked";
  /** What a node's page draws of it: a decision on the newest snapshot alone, or what the history has of it. */
  readonly nodePage: "snapshot" | "history" | "not-drawn";
  /** Whether `nodewise up` asks it about a node's snapshot: for the terminal and the dashboard, or for the dashboard alone. */
  readonly up: "printed" | "recorded" | "not-asked";
  /** The kubelet's endpoints, and the pods, that a collector must have read before it asks it of a node; null: it does not ask it. */
  readonly collected: readonly ("configz" | "stats" | "pods")[] | null;
}

/** A decision's effect on one pod, in whatever form; null: it is no pod's. */
export interface PodPart {
  readonly pod: PodRef | null;
}

/** A place where two decisions of a kind differ; a side that is absent has none. */
export interface PlaceDifference {
  readonly path: string;
  readonly recorded?: unknown;
  readonly replayed?: unknown;
}

/** All of a decision kind but its decider (`api/decide/kinds/index.ts`) and its table (`api/text/tables/index.ts`). */
export interface KindSpec {
  /** For people, in a line: `nodewise kinds`. */
  readonly decides: string;
  readonly ask: AskSpec;
  /** The form of the decision. */
  readonly decision: z.ZodType;
  /** The codes of its reasons. */
  readonly reasons: readonly string[];
  /**
   * The one word for why a decision ended as it did, as the kubelet writes it into the pod's status or an event, so that decisions
   * can be found by it; null: this one has none. Absent: the kind has none.
   */
  reasonOf?(decision: never): string | null;
  /**
   * The part of a decision that stands for its node in lists and metrics of all nodes. `passAtMs`: when the snapshot was observed;
   * null: it does not say. Absent: the verdict is enough.
   */
  summaryOf?(decision: never, passAtMs: number | null): unknown;
  /**
   * What a decision about a node does to its pods, each as often as it says something of it: the pods whose parts differ are those
   * of which two decisions about the node differ. Absent: it does nothing to a pod but the one that is asked about.
   */
  podPartsOf?(decision: never): readonly PodPart[];
  /** Checks that a difference does the same to the node: the kernel has by itself what one decision writes. Absent: none does. */
  hasNoEffect?(difference: PlaceDifference): boolean;
  /** Null: it remembers nothing. */
  readonly facts: FactsSpec | null;
  readonly traits: KindTraits;
}

const decodeNothing: Decode<undefined> = (input, at) =>
  input === undefined || input === null
    ? ok(undefined)
    : err([{ path: at, message: "this kind takes no ask; leave it out" }]);
/** The ask of a kind that is asked nothing. */
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
