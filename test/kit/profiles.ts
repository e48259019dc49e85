import { PROFILES } from "../../api/profiles/index.ts";
import type { Behaviour, OptionGates } from "../../api/profiles/profile.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";

export const VERSIONS: readonly string[] = PROFILES.map(({ version }) => version);
/** The known versions, as messages list them. */
export const KNOWN_VERSIONS = VERSIONS.join(", ");

/** The profile of kubelet 1.36.3, which gave most of the recorded answers. */
export const BEHAVIOUR: Behaviour = v1_36.behaviour;
/** All options of a resource manager are allowed. */
export const ALL_OPTIONS: OptionGates = { alpha: true, beta: true, behaviour: BEHAVIOUR };
