import { realpathSync } from "node:fs";
import type { Result } from "../../../api/model/result.ts";
import { claimsDirectory, type Lock, takeLock } from "../../lock.ts";

/** Of the devices that a state directory tells of: one process gives them away. Error: who holds the claim. */
export const claimDevices = (stateDir: string, bootId: string): Promise<Result<Lock, string>> =>
  takeLock(claimsDirectory(), `/device-state${encodeURI(realpathSync(stateDir))}`, bootId);
