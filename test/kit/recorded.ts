import { readdirSync } from "node:fs";
import { join } from "node:path";
import { PROFILES, profileOf } from "../../api/profiles/index.ts";

/** The newest version of which any answers of a real kubelet are in test/vectors or test/data/lint. */
const lastRecorded = Math.max(
  ...["vectors", "data/lint", "data/lint/flags", "data/sandbox"]
    .flatMap((folder) => readdirSync(join(import.meta.dirname, "..", folder)))
    .flatMap((name) => /^(?:kubelet-)?(1\.\d+)\.\d+(?:\.json)?$/.exec(name)?.[1] ?? [])
    .map((version) => PROFILES.indexOf(profileOf(version))),
);
/** The versions whose answers are recorded: a file that one of them lacks fails its test. */
export const RECORDED = PROFILES.slice(0, lastRecorded + 1);
/** Those that are new, and of which nothing is recorded yet: their tests are skipped. */
export const UNRECORDED = PROFILES.slice(lastRecorded + 1);
