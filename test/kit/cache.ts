import { homedir } from "node:os";
import { join } from "node:path";

/** Where the scripts in .ci put what they download and build. */
export const CACHE =
  process.env["NODEWISE_CACHE"] ?? join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "nodewise");
