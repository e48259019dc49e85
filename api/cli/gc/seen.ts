import { parseDuration } from "../../model/duration.ts";
import type { ImageGcFacts } from "../../model/image-gc-facts.ts";
import { err, ok, type Result } from "../../model/result.ts";

interface Listed {
  readonly id: string;
  readonly spec?: { readonly runtimeHandler?: string };
}

/**
 * What is remembered, with every image that nobody remembers taken as first seen `seen` (a Go duration) before `nowMs`.
 * Errors: no duration, or one that has not passed yet.
 */
export function assumeSeen(
  remembered: ImageGcFacts | undefined,
  images: readonly Listed[],
  nowMs: number,
  seen: string,
): Result<ImageGcFacts, string> {
  const parsed = parseDuration(seen);
  if (!parsed.ok) return err(`--seen: ${parsed.error}`);
  const thenMs = nowMs - Math.round(parsed.value.millis);
  if (thenMs > nowMs || thenMs < 0) return err(`--seen: \`${seen}\` is not how long ago something was`);
  const known = new Set((remembered?.records ?? []).map(([id, , , handler]) => `${id},${handler ?? ""}`));
  const assumed = images.flatMap(({ id, spec }): ImageGcFacts["records"] => {
    const handler = spec?.runtimeHandler ?? "";
    if (known.has(`${id},${handler}`)) return [];
    return [[id, thenMs, null, ...(handler === "" ? [] : [handler])]];
  });
  return ok({
    atMs: remembered?.atMs ?? thenMs,
    beganAtMs: remembered?.beganAtMs ?? thenMs,
    failed: remembered?.failed ?? false,
    records: [...(remembered?.records ?? []), ...assumed],
    removed: remembered?.removed ?? [],
  });
}
