import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { built } from "./packed.ts";

/** The cache in which the built package finds the packages that it needs. */
const CACHE = join(import.meta.dirname, "../../node_modules/.cache");

/**
 * Builds the package once per vitest run, for the processes and threads that tests start. Returns a function that
 * removes the package.
 */
export default function buildOnce(): (() => void) | undefined {
  // the tests of another project have already built the package
  if (process.env["BUILT_PACKAGE"] !== undefined) return;
  mkdirSync(CACHE, { recursive: true });
  const folder = mkdtempSync(join(CACHE, "package-"));
  // some tests run the package as another user
  chmodSync(folder, 0o755);
  process.env["BUILT_PACKAGE"] = built(folder);
  return () => rmSync(folder, { recursive: true });
}
