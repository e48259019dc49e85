import * as z from "zod";
import { LIMITS } from "../base/limits.ts";
import { count, isTimestamp, optional, text, textMap, timestampMeta, wholeNumber } from "./fields.ts";

const names = optional(z.array(text).max(LIMITS.imageNames));
const DIGITS = /^\d{1,19}$/;

/** A uint64 in protobuf's JSON is a text of digits; numbers beyond exact arithmetic are rejected. */
const uint64 = z
  .union([z.number(), z.string().regex(DIGITS, "must be a whole number").transform(Number)])
  .pipe(count)
  .meta({
    anyOf: [
      { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
      { type: "string", pattern: DIGITS.source },
    ],
  });
/** Nanoseconds since 1970, as digits (they exceed what a number holds exactly); `crictl inspect` writes RFC 3339 instead. */
const unixNanos = z
  .union([z.string(), z.number()])
  .transform((v, ctx): string => {
    const digits = typeof v === "number" ? nanosOfNumber(v) : DIGITS.test(v) ? v : nanosOfTime(v);
    if (digits !== undefined) return digits.replace(/^0+(?=\d)/, "");
    ctx.addIssue({ code: "custom", message: "must be nanoseconds since 1970, or an RFC 3339 time" });
    return z.NEVER;
  })
  .meta({
    anyOf: [
      { type: "integer", minimum: 0 },
      { type: "string", pattern: DIGITS.source },
      { type: "string", ...timestampMeta, not: { pattern: "^(?:0|1[0-8]|19[0-6])" } },
    ],
  });
const nanosOfNumber = (v: number): string | undefined =>
  Number.isInteger(v) && v >= 0 ? BigInt(v).toString() : undefined;
function nanosOfTime(text: string): string | undefined {
  if (!isTimestamp(text)) return undefined;
  const [, whole, fraction = "", zone] = /^(.{19})(?:[.](\d+))?(.+)$/.exec(text) ?? [];
  const seconds = Date.parse(`${whole}${zone}`) / 1000;
  return seconds >= 0 ? `${seconds}${fraction.padEnd(9, "0")}` : undefined;
}

const imageSpec = z.object({ image: optional(text), runtimeHandler: optional(text) });

/** runtime.v1 Image. */
const image = z.object({
  id: text,
  repoTags: names,
  repoDigests: names,
  /** Bytes; absent if the runtime does not report it. */
  size: optional(uint64),
  pinned: optional(z.boolean()),
  spec: optional(imageSpec),
  /** The image's layers if the runtime reports them; a layer that two images share is stored once. */
  layers: optional(z.array(z.object({ digest: text, sizeBytes: optional(count) })).max(LIMITS.imageLayers)),
});
export type RuntimeImage = z.output<typeof image>;

export const CONTAINER_STATES = [
  "CONTAINER_CREATED",
  "CONTAINER_RUNNING",
  "CONTAINER_EXITED",
  "CONTAINER_UNKNOWN",
] as const;
/** runtime.v1 Container; `mounts` are those of its ContainerStatus. */
const container = z.object({
  id: text,
  podSandboxId: optional(text),
  metadata: z.object({ name: text, attempt: optional(count) }),
  image: optional(imageSpec),
  imageRef: optional(text),
  imageId: optional(text),
  state: z.enum(CONTAINER_STATES),
  createdAt: unixNanos,
  labels: optional(textMap(/^io[.]kubernetes[.]/)),
  mounts: optional(
    z.array(z.object({ containerPath: optional(text), image: optional(imageSpec) })).max(LIMITS.volumesPerPod),
  ),
});
export type RuntimeContainer = z.output<typeof container>;

export const SANDBOX_STATES = ["SANDBOX_READY", "SANDBOX_NOTREADY"] as const;
/** runtime.v1 PodSandbox. */
const sandbox = z.object({
  id: text,
  metadata: z.object({ name: text, uid: text, namespace: optional(text), attempt: optional(count) }),
  state: z.enum(SANDBOX_STATES),
  createdAt: unixNanos,
});
export type RuntimeSandbox = z.output<typeof sandbox>;

const fileSystemUsage = z.object({
  fsId: optional(z.object({ mountpoint: optional(text) })),
  usedBytes: optional(z.object({ value: optional(uint64) })),
  inodesUsed: optional(z.object({ value: optional(uint64) })),
});
/** runtime.v1 ImageFsInfoResponse. */
const fileSystems = z.object({
  imageFilesystems: optional(z.array(fileSystemUsage).max(16)),
  containerFilesystems: optional(z.array(fileSystemUsage).max(16)),
});

/** A list as crictl prints it: in an object under `key`, or alone. */
const listed = <S extends z.ZodType>(key: string, entry: S, most: number) =>
  z.preprocess(
    (v) => (typeof v === "object" && v !== null && key in v ? ((v as Record<string, unknown>)[key] ?? []) : v),
    z.array(entry).max(most),
  );

/** The responses of a container runtime over CRI v1, in the JSON of `crictl images|ps -a|pods|imagefsinfo -o json`. */
export const runtime = z.object({
  images: optional(listed("images", image, LIMITS.images)),
  /** Containers in every state: `crictl ps -a`. */
  containers: optional(listed("containers", container, LIMITS.runtimeContainers)),
  sandboxes: optional(listed("items", sandbox, LIMITS.runtimeContainers)),
  imageFilesystems: optional(z.preprocess((v) => (v as { status?: unknown } | null)?.status ?? v, fileSystems)),
  /** `crictl info`: the runtime's configuration. */
  info: optional(z.object({ config: optional(z.object({ enableCDI: optional(z.boolean()) })) })),
  /** The sandbox image in the runtime's configuration, by name or id. */
  sandboxImage: optional(text),
  /** Names of the directories in /var/log/pods: `NAMESPACE_NAME_UID`. */
  podLogDirectories: optional(z.array(text).max(LIMITS.runtimeContainers)),
  /** Names of the broken links in /var/log/containers: `POD_NAMESPACE_CONTAINER-ID.log`. */
  danglingLogLinks: optional(z.array(text).max(LIMITS.runtimeContainers)),
});
export type Runtime = z.output<typeof runtime>;

/** The kubelet's flags for dead containers, which its configuration does not have. */
export const containerGcFlags = {
  /** --minimum-container-ttl-duration in ms; the default is 0. */
  minimumContainerTTLMs: optional(wholeNumber(-Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)),
  /** --maximum-dead-containers-per-container; negative: no limit; the default is 1. */
  maximumDeadContainersPerContainer: optional(wholeNumber(-2147483648, 2147483647)),
  /** --maximum-dead-containers; negative: no limit; the default is -1. */
  maximumDeadContainers: optional(wholeNumber(-2147483648, 2147483647)),
};
