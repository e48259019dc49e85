import type { AdmissionDecision } from "../../model/admission.ts";
import type { Shown } from "./shown.ts";

export function admissionTable({ decision }: Shown<AdmissionDecision>): string {
  return `${JSON.stringify(decision, null, 2)}\n`;
}
