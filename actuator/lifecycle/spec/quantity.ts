import { parseQuantity, type Quantity } from "../../../api/model/quantity.ts";
import type { At } from "./at.ts";

/** Null, with its fault told: it is none. */
export function quantityAt(at: At): Quantity | null {
  const { value } = at;
  if (typeof value !== "string" && typeof value !== "number") {
    at.fault("expected a quantity, such as 500m or 64Mi");
    return null;
  }
  const parsed = parseQuantity(String(value));
  if (parsed.ok) return parsed.value;
  at.fault(parsed.error.message);
  return null;
}
