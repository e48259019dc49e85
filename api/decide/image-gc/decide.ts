import type { Asked, Decided, Refusal, Verdict } from "../../model/decision.ts";
import type { NodeEvent } from "../../model/garbage-collection.ts";
import type { ImageGcAsk, ImageGcDecision } from "../../model/image-gc.ts";
import { ok, type Result } from "../../model/result.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { configurationOf, gateOn } from "../config.ts";
import { Reasons } from "../reasons.ts";
import { containersGone } from "./after-container-gc.ts";
import { imageLists } from "./answer.ts";
import { type Collected, collect } from "./collect.ts";
import { type DetectedImage, detectImages } from "./detect.ts";
import { type EvictionOrder, evictionOrder } from "./eviction-order.ts";
import { explainImages, explainPass } from "./explain.ts";
import { ImageNames } from "./image-names.ts";
import { imagesInUse } from "./images-in-use.ts";
import { type ImageGcInput, imageGcInput } from "./input.ts";
import { nextLedger } from "./ledger.ts";
import { listedImages } from "./listed-images.ts";
import { remembered } from "./remember.ts";
import { type Ends, endsOf, isGone } from "./removals.ts";
import { unlisted } from "./unlisted.ts";

/**
 * One pass of the image collection: what goes in the kubelet's order, and what stays and why. Facts: `image-gc`, the `next` of
 * the last pass; without it this is a kubelet's first. Refused: thresholds that no kubelet starts with (its words), no time,
 * half of the runtime's lists (unless the ask tells that there are none), no file system where one is looked at. kubelet 1.36: images.ImageGCManager.
 */
export function decideImageGc(asked: Asked<ImageGcAsk>): Result<Decided<ImageGcDecision>, Refusal> {
  const { snapshot, ask } = asked;
  const read = imageGcInput(asked);
  if (!read.ok) return read;
  const input = read.value;
  const { now, before, policy } = input;
  if (ask.error !== undefined) return ok(unlisted(asked, input, ask.error));
  const removedFirst = containersGone(asked);
  if (!removedFirst.ok) return removedFirst;
  const reasons = new Reasons(asked.explain);
  const needs: string[] = [];
  const byHandler = gateOn(configurationOf(snapshot), "RuntimeClassInImageCriApi");
  const inventory = listedImages(input.images, byHandler, reasons, needs);
  const names = new ImageNames(inventory);
  const gone = removedFirst.value;
  const containers = gone.size === 0 ? input.containers : input.containers.filter((c) => !gone.has(c.id));
  const { pods = [], runtime } = snapshot;
  const uses = imagesInUse({ containers, sandboxes: runtime?.sandboxes ?? [], pods, names, byHandler }, reasons);
  const images = detectImages(inventory, uses, before, now);
  const sandboxImages = new Set(names.find(runtime?.sandboxImage ?? "").map((i) => i.key));
  const order = evictionOrder(images, uses, sandboxImages);
  const ends = endsOf(ask.done);
  const beganAtMs = input.beganAtMs ?? now;
  const { operation } = ask;
  const pass = collect({ operation, policy, order: order.order, ends, disk: input.disk, now, beganAtMs });
  const ledger = nextLedger(before?.removed ?? [], images, removedImages(images, ends), now);
  const { maxAgeNanos: _, ...told } = policy;
  const decision: ImageGcDecision = {
    operation,
    policy: told,
    fileSystem: pass.disk,
    ...imageLists(pass, order, uses, policy),
    freedBytes: Number(pass.freed),
    error: pass.error,
    events: eventsOf(input, ask, pass, order, byHandler),
    pulledAgain: ledger.pulledAgain,
  };
  if (asked.explain !== "off") {
    explainPass(input, decision, reasons);
    explainImages(decision, uses, input, asked.explain === "full", reasons);
  }
  needs.push(...doubts(snapshot, input, ask, pass));
  const next = remembered(input, ask, images, ends, pass, ledger);
  return ok({ decision, verdict: verdictOf(pass), reasons: reasons.list, needs, next });
}

/** In the order in which they went. */
function removedImages(images: readonly DetectedImage[], ends: Ends): readonly DetectedImage[] {
  if (ends.size === 0) return [];
  const byKey = new Map(images.map((i) => [i.key, i]));
  return [...ends].flatMap(([key, { end }]) => (end === "removed" ? (byKey.get(key) ?? []) : []));
}

/** In the order in which the kubelet records them; the last comes from the timer, from the second failure in a row on. */
function eventsOf(
  { before }: ImageGcInput,
  { operation }: ImageGcAsk,
  { error, events }: Collected,
  { barred }: EvictionOrder,
  byHandler: boolean,
): readonly NodeEvent[] {
  const invalid = barred.filter(({ image, why }) => byHandler && why === "invalid-id" && image.id.split(",")[0] === "");
  const repeated = operation === "garbage-collect" && error !== null && before?.failed === true;
  return [
    ...invalid.map(({ image }) => warning("InvalidImageID", `ImageID is not valid, skipping, image: ${image.key}`)),
    ...events,
    ...(repeated ? [warning("ImageGCFailed", error)] : []),
  ];
}
const warning = (reason: string, message: string): NodeEvent => ({ type: "Warning", reason, message });

/** What would make the answer surer. */
function doubts(snapshot: Snapshot, input: ImageGcInput, ask: ImageGcAsk, { taken }: Collected): readonly string[] {
  const needs: string[] = [];
  if (input.policy.maxAgeMs > 0 && input.beganAtMs === null) needs.push("kubelet.startedAt");
  // with images gone that were too old, the file system is another
  if (ask.fileSystem === null && taken.some((t) => t.why === "too-old")) needs.push("ask.fileSystem");
  const mountsUntold = input.containers.findIndex((c) => c.mounts === undefined);
  if (mountsUntold >= 0 && snapshot.pods === undefined) needs.push(`runtime.containers[${mountsUntold}].mounts`);
  return needs;
}

function verdictOf({ error, taken }: Collected): Verdict {
  if (error !== null) return "fails";
  return taken.some(isGone) ? "removes" : "keeps";
}
