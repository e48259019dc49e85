import type { At } from "./at.ts";

/** A path that may not lead upwards. kubernetes 1.36: validatePathNoBacksteps. */
export function checkNoBacksteps(at: At): void {
  if (at.text().split("/").includes("..")) at.invalid("must not contain '..'");
}
/** kubernetes 1.36: validateLocalDescendingPath. */
export function checkDescending(at: At): void {
  if (at.text().startsWith("/")) at.invalid("must be a relative path");
  checkNoBacksteps(at);
}
