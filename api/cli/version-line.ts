import packageJson from "../../package.json" with { type: "json" };
import { PROFILES } from "../profiles/index.ts";

export const policyVersions = PROFILES.map(({ policyVersion }) => policyVersion);

export const VERSION = packageJson.version;

/** One line: the program's version, the policies that it knows, and the Node that it runs on. */
export const VERSION_LINE = `nodewise ${VERSION} (policies ${policyVersions.join(", ")}, Node ${process.versions.node})`;
