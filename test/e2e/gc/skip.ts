import { whyNoContainerd } from "../containerd/start.ts";

/** Why the tests of `what` cannot run here, printed once; undefined: they can. In CI they must run. */
export function noContainerd(what: string): string | undefined {
  const why = whyNoContainerd();
  if (why === undefined) return undefined;
  if (process.env["CI"] === "true") throw new Error(`CI must run the collection of ${what}: ${why}`);
  console.warn(`skipped the collection of ${what} end to end: ${why}`);
  return why;
}
