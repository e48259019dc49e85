import type { StoreFailure } from "../../../db/failure.ts";
import type { Pieces } from "../../../db/rows.ts";
import { Lru } from "../../base/cache.ts";
import { isObject } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import { isVolatilePart } from "../../decide/input.ts";
import { decodeStored } from "../../model/decode.ts";
import type { Snapshot } from "../../model/snapshot.ts";

/** Members of a stored snapshot, decoded except for the configuration, which may be replaced. */
interface Part {
  readonly decoded: Snapshot;
  /** The configuration as posted; `undefined` if the members have none. */
  readonly kubeletConfiguration: unknown;
}
/** All members of a snapshot, and a key of those that stay the same while the node does. */
export interface SnapshotParts extends Part {
  readonly cacheKey: string;
}
/** Reads the parts; null if they cannot be read one by one, so that the whole must be. */
type PartsReader = (pieces: Pieces) => Promise<Result<SnapshotParts | null, StoreFailure>>;

/**
 * Decodes snapshots one by one. Parts that rows share are decoded once; the latest are cached, up to `length` characters of text.
 * INVARIANT: members are checked independently, and shared texts are whole members.
 */
export function partsReader(length: number): PartsReader {
  const kept = new Lru<string, Part>(Number.POSITIVE_INFINITY, length);
  return async ({ rest, shared }) => {
    if (shared.some(({ isRange }) => isRange)) return ok(null);
    // if the first member is shared, the comma after it remains
    const members = membersIn(rest.replace(/^\{,/, "{"));
    const own = members === null ? null : partOf(members);
    if (members === null || own === null) return ok(null);
    let { decoded, kubeletConfiguration } = own;
    for (const { id, read } of shared) {
      let part = kept.get(id) ?? null;
      if (part === null) {
        const text = await read();
        if (!text.ok) return text;
        const some = membersIn(`{${text.value.replace(/^,/, "")}}`);
        part = some === null ? null : partOf(some);
        if (part === null) return ok(null);
        kept.set(id, part, text.value.length);
      }
      decoded = { ...decoded, ...part.decoded };
      kubeletConfiguration ??= part.kubeletConfiguration;
    }
    const cacheKey = Object.entries(members).filter(([name]) => !isVolatilePart(name));
    return ok({ decoded, kubeletConfiguration, cacheKey: JSON.stringify([shared.map(({ id }) => id), cacheKey]) });
  };
}

function membersIn(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function partOf({ kubeletConfiguration, ...members }: Readonly<Record<string, unknown>>): Part | null {
  const decoded = decodeStored(members);
  return decoded.ok ? { decoded: decoded.value, kubeletConfiguration } : null;
}
