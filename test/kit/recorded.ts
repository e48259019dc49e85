import { readdirSync } from "node:fs";
import { join } from "node:path";
import { PROFILES, profileOf } from "../../api/profiles/index.ts";

/** The newest version for which test/vectors or test/data contain recorded answers of a real kubelet. */
const lastRecorded = Math.max(
  ...["vectors", "data/lint", "data/lint/flags", "data/sandbox"]
    .flatMap((folder) => readdirSync(join(import.meta.dirname, "..", folder)))
    .flatMap((name) => /^(?:kubelet-)?(1\.\d+)\.\d+(?:\.json)?$/.exec(name)?.[1] ?? [])
    .map((version) => PROFILES.indexOf(profileOf(version))),
);
/** The versions with recorded answers: a missing file of such a version fails its test. */
export const RECORDED = PROFILES.slice(0, lastRecorded + 1);
/** The new versions without any recorded answers: their tests are skipped. */
export const UNRECORDED = PROFILES.slice(lastRecorded + 1);
