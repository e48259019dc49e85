import type { ReadProblem } from "./problem.ts";

/** No Kubernetes object is nested so deep; what walks the values after us may recurse. */
export const MAX_DEPTH = 100;

/** Also true of a value that holds itself, as a YAML alias can make it. */
export function depthExceeds(value: unknown, limit: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (limit === 0) return true;
  return Object.values(value).some((inner) => depthExceeds(inner, limit - 1));
}

export const tooDeep = (file: string, document: number): ReadProblem => ({
  code: "too-deep",
  file,
  document,
  message: `is nested more than ${MAX_DEPTH} levels deep: flatten it`,
});
