/** `10MB`, `1 Gi`, `512mib`: what was perhaps meant, as Kubernetes writes it; null: nothing is near. */
export function meantQuantity(text: string): string | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([kmgt])(i?)b?\s*$/i.exec(text);
  if (match === null) return null;
  const [, digits = "", letter = "", binary] = match;
  const isBinary = binary !== "";
  const upper = letter.toUpperCase();
  const meant = `${digits}${isBinary ? `${upper}i` : upper === "K" ? "k" : upper}`;
  return meant === text ? null : meant;
}

/** `30`, `5 min`, `2d`: the same for a duration. */
export function meantDuration(text: string): string | null {
  const match = /^\s*(\d+)\s*(|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)\s*$/i.exec(text);
  if (match === null) return null;
  const [, digits = "", unit = ""] = match;
  const letter = unit.charAt(0).toLowerCase();
  if (letter === "d") return `${Number(digits) * 24}h`;
  return `${Number(digits)}${letter === "" ? "s" : letter}`;
}
