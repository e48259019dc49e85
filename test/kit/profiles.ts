import { PROFILES } from "../../api/profiles/index.ts";
import type { Behaviour, OptionGates } from "../../api/profiles/profile.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";

export const VERSIONS: readonly string[] = PROFILES.map(({ version }) => version);
/** As messages list them. */
export const KNOWN_VERSIONS = VERSIONS.join(", ");

/** The profile of the kubelet (1.36.3) that gave most of the answers that tests compare with. */
export const BEHAVIOUR: Behaviour = v1_36.behaviour;
/** Every option of a resource manager is let through. */
export const ALL_OPTIONS: OptionGates = { alpha: true, beta: true, behaviour: BEHAVIOUR };
