import pLimit, { type LimitFunction } from "p-limit";
import { err, ok, type Result } from "../../../api/base/result.ts";
import { goDurationText } from "../../../api/decide/go/strconv.ts";
import { type BackOff, type BackOffLimits, isOver, raised } from "../../../api/decide/probes/back-off.ts";
import type { LocalImage, PodRuntime, RuntimeFault } from "../../containerd/cri.ts";
import { kubeletText } from "../../containerd/fault.ts";
import type { PodContainer } from "../../lifecycle/pod.ts";
import type { PodClock } from "../pod-clock.ts";
import type { PodEvents } from "../records/records.ts";

/** kubelet 1.36: imageBackOff, with its backOffPeriod and MaxImageBackOff. */
const LIMITS: BackOffLimits = { firstMs: 10_000, longestMs: 300_000 };

interface Entry extends BackOff {
  /** Why the last pull failed. */
  readonly failure: string;
}

/**
 * The back-off of an image that cannot be pulled, by pod and image: it doubles after each failure, from 10 seconds to
 * 5 minutes. An entry is forgotten after ten minutes without a failure. client-go: flowcontrol.Backoff.
 */
class ImageBackOff {
  readonly #entries = new Map<string, Entry>();

  /** Why the last pull failed, while it is too early for the next; null: the image may be pulled. */
  heldBackBy(key: string, nowMs: number): string | null {
    const entry = this.#entries.get(key);
    if (entry === undefined || isOver(entry, nowMs, LIMITS)) return null;
    return nowMs - entry.updatedAtMs < entry.delayMs ? entry.failure : null;
  }

  failed(key: string, failure: string, nowMs: number): void {
    const held = raised(this.#entries.get(key), nowMs, { nowMs, limits: LIMITS });
    this.#entries.set(key, { ...held, failure });
  }

  /** Drops entries that are long past. As in the kubelet, a pull that works does not reset the image's back-off. */
  sweep(nowMs: number): void {
    for (const [key, entry] of this.#entries) if (isOver(entry, nowMs, LIMITS)) this.#entries.delete(key);
  }
}

const DOMAIN = String.raw`(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?`;
const PART = String.raw`[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*`;
const TAG = String.raw`[\w][\w.-]{0,127}`;
const DIGEST = `[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}`;
/** distribution/reference: reference, as a user writes it. */
const REFERENCE = new RegExp(`^((?:${DOMAIN}/)?${PART}(?:/${PART})*)(?::(${TAG}))?(?:@(${DIGEST}))?$`);

/**
 * The image name for the runtime: `:latest` is added if the name has neither tag nor digest. Error: what is wrong with
 * the name. kubelet 1.36: applyDefaultImageTag.
 */
export function withDefaultTag(image: string): Result<string, string> {
  const found = REFERENCE.exec(image);
  if (found === null) {
    const isUpperCase = REFERENCE.test(image.toLowerCase());
    const why = isUpperCase ? `repository name (${repositoryOf(image)}) must be lowercase` : "invalid reference format";
    return err(`couldn't parse image name "${image}": ${isUpperCase ? "invalid reference format: " : ""}${why}`);
  }
  return ok(found[2] === undefined && found[3] === undefined ? `${image}:latest` : image);
}
const repositoryOf = (image: string): string => image.replace(/(?::[^/]*)?$/, "");

/** Why a container does not run, for its waiting status. */
export interface ContainerFault {
  /** `ErrImagePull`, `CreateContainerError` */
  readonly reason: string;
  readonly message: string;
}
export interface ImageOptions {
  /** KubeletConfiguration: one pull at a time. */
  readonly serializeImagePulls: boolean;
  /** The limit of parallel pulls; null: none. */
  readonly maxParallelImagePulls: number | null;
}
type ImageRuntime = Pick<PodRuntime, "image" | "pull">;

/** Makes sure that images are there; one instance for all pods, since it limits their pulls. kubelet 1.36: imageManager. */
export class Images {
  readonly #runtime: ImageRuntime;
  readonly #clock: PodClock;
  readonly #limit: LimitFunction;
  readonly #backOff = new ImageBackOff();

  constructor(runtime: ImageRuntime, clock: PodClock, options: ImageOptions) {
    this.#runtime = runtime;
    this.#clock = clock;
    this.#limit = pLimit(options.serializeImagePulls ? 1 : (options.maxParallelImagePulls ?? Number.POSITIVE_INFINITY));
  }

  /**
   * Pulls a container's image if its pull policy says so, and emits the kubelet's events. Error: what the container waits for.
   * kubelet 1.36: EnsureImageExists.
   */
  async ensure(
    podUid: string,
    { name, image, imagePullPolicy }: Pick<PodContainer, "name" | "image" | "imagePullPolicy">,
    events: PodEvents,
  ): Promise<Result<LocalImage, ContainerFault>> {
    const fail = (type: "normal" | "warning", event: string, said: string, reason: string, message = said) => {
      events[type](event, said, name);
      return err({ reason, message });
    };
    const asked = withDefaultTag(image);
    if (!asked.ok)
      return fail(
        "warning",
        "InspectFailed",
        `Failed to apply default image tag "${image}": ${asked.error}`,
        "InvalidImageName",
      );
    if (imagePullPolicy !== "Always") {
      const local = await this.#runtime.image(asked.value);
      if (!local.ok)
        return fail(
          "warning",
          "InspectFailed",
          `Failed to inspect image "": ${kubeletText(local.error)}`,
          "ImageInspectError",
        );
      if (local.value !== null) {
        events.normal(
          "Pulled",
          `Container image "${image}" already present on machine and can be accessed by the pod`,
          name,
        );
        return ok(local.value);
      }
      if (imagePullPolicy === "Never") {
        const said = `Container image "${image}" is not present with pull policy of Never`;
        return fail("warning", "ErrImageNeverPull", said, "ErrImageNeverPull");
      }
    }
    const key = `${podUid}_${image}`;
    const failure = this.#backOff.heldBackBy(key, this.#clock.monotonicMs());
    if (failure !== null) {
      const said = `Back-off pulling image "${image}"`;
      return fail("normal", "BackOff", said, "ImagePullBackOff", `${said}: ${failure}`);
    }
    return this.#pull({ key, image, asked: asked.value, name }, events);
  }

  async #pull(pull: Pull, events: PodEvents): Promise<Result<LocalImage, ContainerFault>> {
    const { key, image, asked, name } = pull;
    events.normal("Pulling", `Pulling image "${image}"`, name);
    const askedAt = this.#clock.monotonicMs();
    const { pulled, tookMs, local } = await this.#limit(async () => {
      const startedAt = this.#clock.monotonicMs();
      const pulled = await this.#runtime.pull(asked);
      const local = pulled.ok ? await this.#runtime.image(asked) : null;
      return { pulled, local, tookMs: this.#clock.monotonicMs() - startedAt };
    });
    const nowMs = this.#clock.monotonicMs();
    if (!pulled.ok) {
      const said = pullText(pulled.error);
      events.warning("Failed", `Failed to pull image "${image}": ${said}`, name);
      const fault = pullFault(image, said);
      this.#backOff.failed(key, `${fault.reason}: ${fault.message}`, nowMs);
      return err(fault);
    }
    const found = local?.ok === true ? local.value : null;
    const took = `${durationText(tookMs)} (${durationText(nowMs - askedAt)} including waiting)`;
    events.normal(
      "Pulled",
      `Successfully pulled image "${image}" in ${took}. Image size: ${found?.sizeBytes ?? 0} bytes.`,
      name,
    );
    this.#backOff.sweep(nowMs);
    return ok(found ?? { id: pulled.value, user: null });
  }
}
interface Pull {
  readonly key: string;
  /** The name in the pod's spec. */
  readonly image: string;
  /** The name for the runtime. */
  readonly asked: string;
  readonly name: string;
}

const durationText = (ms: number): string => goDurationText(BigInt(Math.trunc(ms)) * 1_000_000n);

/** The kubelet's client omits the code if it is Unknown. cri-client v0.36: pullImageV1. */
const pullText = (fault: RuntimeFault): string => (fault.code === "UNKNOWN" ? fault.message : kubeletText(fault));

/** kubelet 1.36: evalCRIPullErr. */
function pullFault(image: string, said: string): ContainerFault {
  for (const [reason, why] of SPECIAL)
    if (said.startsWith(reason))
      return { reason, message: `image pull failed for ${image} because the ${why}${said.slice(reason.length)}` };
  return { reason: "ErrImagePull", message: said };
}
const SPECIAL = [
  ["RegistryUnavailable", "registry is unavailable"],
  ["SignatureValidationFailed", "signature validation failed"],
] as const;
