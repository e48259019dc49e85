import { value } from "../../model/amount.ts";
import type { Kind } from "../../model/decision.ts";
import { LIMITS } from "../../model/limits.ts";
import { parseQuantity } from "../../model/quantity.ts";
import { ok, type Result } from "../../model/result.ts";
import { EXIT, type Fault, fault } from "../exit.ts";

export interface FileSystemOptions {
  /** Bytes or a quantity. */
  readonly capacity?: string;
  readonly available?: string;
}
/** What `df` tells of the image file system, in bytes. */
export interface FileSystemSize {
  readonly capacityBytes: number;
  readonly availableBytes: number;
}

/** `--capacity` and `--available`; undefined without them. Errors: one without the other, no size, a kind that reads neither. */
export function fileSystemSize(
  kind: Kind,
  { capacity, available }: FileSystemOptions,
): Result<FileSystemSize | undefined, Fault> {
  if (capacity === undefined && available === undefined) return ok(undefined);
  if (kind !== "image-gc") {
    return fault(EXIT.badInput, `--capacity and --available: ${kind} reads no image file system; image-gc does`);
  }
  if (capacity === undefined || available === undefined) {
    const [given, other] = capacity === undefined ? ["--available", "--capacity"] : ["--capacity", "--available"];
    return fault(EXIT.badInput, `${given} says half of it: give ${other} too (df -B1 prints both)`);
  }
  const capacityBytes = bytesOf("--capacity", capacity);
  if (!capacityBytes.ok) return capacityBytes;
  const availableBytes = bytesOf("--available", available);
  if (!availableBytes.ok) return availableBytes;
  return ok({ capacityBytes: capacityBytes.value, availableBytes: availableBytes.value });
}

function bytesOf(option: string, text: string): Result<number, Fault> {
  const wanted = "give bytes or a quantity, such as 270553174016 or 252Gi";
  const parsed = parseQuantity(text);
  if (!parsed.ok) return fault(EXIT.badInput, `${option} ${text}: ${parsed.error.message}: ${wanted}`);
  const bytes = Number(value(parsed.value.amount));
  return bytes >= 0 && bytes <= LIMITS.units ? ok(bytes) : fault(EXIT.badInput, `${option} ${text}: ${wanted}`);
}
