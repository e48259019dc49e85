import { readdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../../api/model/result.ts";
import { vacancyAt } from "../grpc/listener.ts";
import { SOCKET_NAME } from "./names.ts";

/**
 * Makes the directory ready for a new kubelet.sock: the sockets of plugins that knew the last one go, which tells them to
 * come back. Only sockets go, and none while somebody answers at kubelet.sock. kubelet 1.36: CleanupPluginDirectory.
 */
export async function clearSocketDir(dir: string): Promise<Result<{ readonly removed: readonly string[] }, string>> {
  const vacancy = await vacancyAt(join(dir, SOCKET_NAME));
  if (!vacancy.ok) return vacancy;
  const removed: string[] = [];
  try {
    for (const entry of readdirSync(dir, { withFileTypes: true }).filter((e) => e.isSocket())) {
      if (isRemoved(join(dir, entry.name))) removed.push(entry.name);
    }
  } catch (error) {
    return err(`cannot clear the directory of device plugins: ${(error as Error).message}`);
  }
  return ok({ removed });
}

/** False: somebody was quicker. */
function isRemoved(path: string): boolean {
  try {
    unlinkSync(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}
