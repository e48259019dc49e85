import { LIMITS } from "../../base/limits.ts";
import { didYouMean } from "../../base/near-name.ts";
import { ok, type Result } from "../../base/result.ts";
import { takes } from "../../documents/kind-examples.ts";
import { value } from "../../model/amount.ts";
import type { Kind } from "../../model/decision.ts";
import { asksFor } from "../../model/kinds.ts";
import { parseQuantity } from "../../model/quantity.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

export interface CapacityOptions {
  /** `cpu=4,memory=16Gi`: the node's. Bytes or a quantity: the image file system's. */
  readonly capacity?: string;
  /** Free bytes of the image file system. */
  readonly available?: string;
}
/** The image file system's size as `df` shows it, in bytes. */
export interface FileSystemSize {
  readonly capacityBytes: number;
  readonly availableBytes: number;
}
/** Quantities by resource name, as written. */
export type ResourceTexts = Readonly<Record<string, string>>;

/** The part of a snapshot from `--capacity` and `--available`: the kind decides which of the two it is. */
interface GivenCapacity {
  readonly imageFs?: FileSystemSize;
  readonly nodeCapacity?: ResourceTexts;
}

/** Errors: a kind that reads neither, the other kind's form, one option without the other, no size. */
export function capacityOf(kind: Kind, options: CapacityOptions): Result<GivenCapacity, Fault> {
  const { capacity, available } = options;
  if (capacity === undefined && available === undefined) return ok({});
  if (asksFor(kind, "fileSystem")) return imageFsOf(options);
  if (!takes(kind, "node-capacity")) {
    const other =
      capacity?.includes("=") === true ? ["capacity of a node", "allocatable"] : ["image file system", "image-gc"];
    return fault(EXIT.badInput, `--capacity and --available: ${kind} reads no ${other[0]}; ${other[1]} does`);
  }
  if (available !== undefined)
    return fault(EXIT.badInput, `--available: ${kind} reads no image file system; image-gc does`);
  const resources = resourcesIn(capacity ?? "");
  return resources.ok ? ok({ nodeCapacity: resources.value }) : resources;
}

const NODE_FORM = "NAME=QUANTITY,... of the node's resources";

/** The resources that a kubelet reports of its machine. Those of device plugins have a domain and any name. */
const NATIVE = ["cpu", "memory", "ephemeral-storage", "pods"];
const HUGE_PAGES = /^hugepages-\d+(?:Ki|Mi|Gi)$/;

function resourcesIn(text: string): Result<ResourceTexts, Fault> {
  const resources = new Map<string, string>();
  for (const pair of text.split(",").map((part) => part.trim())) {
    const [, name, quantity] = /^([^=]+)=(.+)$/.exec(pair) ?? [];
    if (name === undefined || quantity === undefined)
      return fault(
        EXIT.badInput,
        `--capacity ${text}: expected ${NODE_FORM}, such as cpu=4,memory=16Gi,pods=110, found \`${pair}\``,
      );
    const isKnown = NATIVE.includes(name) || HUGE_PAGES.test(name) || name.includes("/");
    if (!isKnown) {
      const meant = didYouMean(name, NATIVE, `there are ${NATIVE.join(", ")}, hugepages-SIZE and DOMAIN/NAME`);
      return fault(EXIT.badInput, `--capacity: a node has no resource \`${name}\`; ${meant}`);
    }
    if (resources.has(name)) return fault(EXIT.badInput, `--capacity: \`${name}\` is given twice`);
    const parsed = parseQuantity(quantity);
    if (!parsed.ok) return fault(EXIT.badInput, `--capacity: ${name}: ${parsed.error.message}`);
    resources.set(name, quantity);
  }
  return ok(Object.fromEntries(resources));
}

function imageFsOf({ capacity, available }: CapacityOptions): Result<GivenCapacity, Fault> {
  if (capacity?.includes("=") === true)
    return fault(
      EXIT.badInput,
      `--capacity ${capacity}: image-gc needs the size of the image file system; ${NODE_FORM} is for allocatable`,
    );
  if (capacity === undefined || available === undefined) {
    const [given, other] = capacity === undefined ? ["--available", "--capacity"] : ["--capacity", "--available"];
    return fault(EXIT.badInput, `${given} is only half of it: give ${other} too (df -B1 prints both)`);
  }
  const capacityBytes = bytesOf("--capacity", capacity);
  if (!capacityBytes.ok) return capacityBytes;
  const availableBytes = bytesOf("--available", available);
  if (!availableBytes.ok) return availableBytes;
  return ok({ imageFs: { capacityBytes: capacityBytes.value, availableBytes: availableBytes.value } });
}

function bytesOf(option: string, text: string): Result<number, Fault> {
  const wanted = "give bytes or a quantity, such as 270553174016 or 252Gi";
  const parsed = parseQuantity(text);
  if (!parsed.ok) return fault(EXIT.badInput, `${option}: ${parsed.error.message}: ${wanted}`);
  const bytes = Number(value(parsed.value.amount));
  return bytes >= 0 && bytes <= LIMITS.units ? ok(bytes) : fault(EXIT.badInput, `${option} ${text}: ${wanted}`);
}
