import { type Fields, fieldsOf } from "../../base/own.ts";
import type { ImageKept, ImageRemoval } from "../../model/image-gc.ts";
import type { Change, Finding, Missing, PodExplanationDecision, Word } from "../../model/why.ts";
import { rfc3339 } from "../timestamp.ts";
import { ask, nodeAt } from "./node-at.ts";
import {
  containerOf,
  eventsOf,
  finding,
  missing,
  type PodContainer,
  type WhyContext,
  wordOfEvent,
} from "./why-context.ts";

/**
 * The finding for a container that waits for an image: it cannot be pulled, or it is gone from the node, perhaps removed by the
 * kubelet.
 */
export function imageFinding(of: WhyContext, one: PodContainer, ...said: readonly Word[]): Finding {
  const image = one.spec?.image ?? imageIn(said) ?? one.status?.image ?? "";
  const pullPolicy = one.spec?.imagePullPolicy ?? null;
  const events = eventsOf(of, "Failed", "BackOff", "ErrImageNeverPull", "Pulling", "InspectFailed").filter(
    (event) => (containerOf(event) ?? one.name) === one.name && event.type !== "Normal",
  );
  const words = [...said, ...events.slice(-2).map(wordOfEvent)].filter(isFirst);
  const since = events[0]?.first ?? null;
  const removal = removalOf(of, image);
  const asked = of.decides ? askCollection(of, image) : { onNode: onNodeOf(of, image), decisions: [], missing: [] };
  const common = { since, container: one.name, words, decisions: asked.decisions, missing: asked.missing };
  const isNever = said.some(({ reason }) => reason === "ErrImageNeverPull");
  const policy: readonly Change[] = isNever ? [{ code: "image_pull_policy", numbers: { image } }] : [];
  if (removal === null && !(isNever && asked.onNode === false)) {
    return finding("image-pull", {
      ...common,
      numbers: { image, pullPolicy, onNode: asked.onNode },
      whatWouldChange: policy,
    });
  }
  const { removedAt, why, sizeBytes } = removal ?? { removedAt: null, why: null, sizeBytes: null };
  const threshold: readonly Change[] = why === null ? [] : [{ code: "image_gc_threshold", numbers: { why } }];
  const lacks =
    removal === null && of.decides ? [missing(of, "history", "whether the kubelet removed it, when and why")] : [];
  return finding("image-gone", {
    ...common,
    numbers: { image, pullPolicy, removedAt, why, sizeBytes },
    whatWouldChange: [...policy, ...threshold],
    missing: [...asked.missing, ...lacks],
  });
}
const isFirst = ({ reason, message }: Word, i: number, all: readonly Word[]): boolean =>
  all.findIndex((other) => other.reason === reason && other.message === message) === i;

/** The image that the kubelet's message names in quotes. */
const imageIn = (words: readonly Word[]): string | undefined =>
  words.flatMap(({ message }) => /image \\?"([^"\\]+)/.exec(message)?.[1] ?? [])[0];

/** Whether the runtime's names include the image: `busybox` is `docker.io/library/busybox:latest` there. */
function isNamed(names: readonly unknown[], image: string): boolean {
  const given = image.includes("@") || /:[^/]+$/.test(image) ? image : `${image}:latest`;
  const [first = ""] = given.split("/");
  const whole =
    /[.:]/.test(first) || first === "localhost"
      ? given
      : given.includes("/")
        ? `docker.io/${given}`
        : `docker.io/library/${given}`;
  return names.some((name) => name === given || name === whole);
}
const namesOf = (image: Fields): readonly unknown[] =>
  [image["repoTags"], image["repoDigests"], image["names"]].flatMap((list) => (Array.isArray(list) ? list : []));

/** The last removal of the image in a recorded pass of image garbage collection. */
function removalOf({ evidence }: WhyContext, image: string) {
  const passes = evidence.decisions.filter(({ kind }) => kind === "image-gc");
  for (const { decision, decidedAt } of passes.toReversed()) {
    const { remove } = decision;
    const own = (Array.isArray(remove) ? remove.map(fieldsOf) : []).find((one) => isNamed(namesOf(one), image));
    if (own?.["end"] !== "removed") continue;
    const { why, sizeBytes } = own;
    return {
      removedAt: decidedAt,
      why: typeof why === "string" ? why : null,
      sizeBytes: typeof sizeBytes === "number" ? sizeBytes : null,
    };
  }
  return null;
}

interface Collection {
  /** Null if the node's images are not known. */
  readonly onNode: boolean | null;
  readonly decisions: readonly PodExplanationDecision[];
  readonly missing: readonly Missing[];
}

function onNodeOf({ evidence, subject }: WhyContext, image: string): boolean | null {
  const runtime = evidence.parts.get(subject.node ?? "")?.["runtime"] ?? evidence.parts.get("")?.["runtime"];
  const { images } = fieldsOf(runtime);
  const list = Array.isArray(images) ? images : fieldsOf(images)["images"];
  return Array.isArray(list) ? list.map(fieldsOf).some((one) => isNamed(namesOf(one), image)) : null;
}

/** Decides what image garbage collection would now do with the image. */
function askCollection(of: WhyContext, image: string): Collection {
  const { evidence, subject } = of;
  const onNode = onNodeOf(of, image);
  if (onNode === null)
    return {
      onNode,
      decisions: [],
      missing: [missing(of, "images", "whether the image is on the node (run it there)")],
    };
  const node = nodeAt(evidence, { node: subject.node ?? "", atMs: null });
  if (!node.ok) return { onNode, decisions: [], missing: [] };
  const observedAt = node.value.snapshot.observedAt ?? (of.asOfMs > 0 ? rfc3339(of.asOfMs) : undefined);
  const timed = {
    ...node.value,
    snapshot: { ...node.value.snapshot, ...(observedAt === undefined ? {} : { observedAt }) },
  };
  const asked = ask("image-gc", timed, undefined);
  if (!asked.ok) return { onNode, decisions: [], missing: [] };
  const { decided, head } = asked.value;
  const { policy, fileSystem, remove, keep } = decided.decision;
  const all: readonly (ImageRemoval | ImageKept)[] = [...remove, ...keep];
  const own = all.find(({ names }) => isNamed(names, image)) ?? null;
  const excerpt = { policy, fileSystem, image: own, removes: remove.length };
  return { onNode, decisions: [{ kind: "image-gc", ...head, agrees: null, differs: null, excerpt }], missing: [] };
}
