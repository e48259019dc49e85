import { readdirSync } from "node:fs";
import { join } from "node:path";
import { PROFILES, profileOf } from "../../api/profiles/index.ts";
import type { Behaviour, OptionGates } from "../../api/profiles/profile.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";

export const VERSIONS: readonly string[] = PROFILES.map(({ version }) => version);
/** As messages list them. */
export const KNOWN_VERSIONS = VERSIONS.join(", ");

/** The profile of the kubelet (1.36.3) that gave most of the answers that tests compare with. */
export const BEHAVIOUR: Behaviour = v1_36.behaviour;
/** Every option of a resource manager is let through. */
export const ALL_OPTIONS: OptionGates = { alpha: true, beta: true, behaviour: BEHAVIOUR };

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
