import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { built } from "./packed.ts";

/** Where the package finds the packages that it needs. */
const CACHE = join(import.meta.dirname, "../../node_modules/.cache");

/** Builds the package once a run of vitest, for the processes and threads that tests start; answers what removes it. */
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
