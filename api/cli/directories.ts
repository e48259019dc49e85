import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/** Where nodewise keeps its state by default: `$XDG_STATE_HOME/nodewise`, else `~/.local/state/nodewise`. */
export function stateHome(env: Environment): string {
  const base = env["XDG_STATE_HOME"] ?? "";
  // The base directory specification: a relative one is to be ignored.
  return join(isAbsolute(base) ? base : join(homedir(), ".local", "state"), "nodewise");
}
