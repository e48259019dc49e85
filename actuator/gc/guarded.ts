import { faultText } from "../containerd/fault.ts";
import type { RuntimeFault } from "../containerd/port.ts";

/** What a look right before a removal found. A surprise is told in words; after a fault nothing is known. */
export type Guarded =
  | { readonly state: "as-planned"; readonly stopFirst: boolean; readonly logPath: string | null }
  | { readonly state: "surprise"; readonly found: string }
  | { readonly state: "fault"; readonly message: string };

export const AS_PLANNED: Guarded = { state: "as-planned", stopFirst: false, logPath: null };
export const GONE = "it is not there any more";
export const surprise = (found: string): Guarded => ({ state: "surprise", found });
export const faulty = (fault: RuntimeFault): Guarded => ({ state: "fault", message: faultText(fault) });
