import { err, ok, type Result } from "../../api/model/result.ts";

/** A variable with its value, as CRI takes it. */
export interface EnvPair {
  readonly key: string;
  readonly value: string;
}

/**
 * `$(NAME)` by its value, `$$` by one dollar; what is no reference stays as it is.
 * kubernetes 1.36: third_party/forked/golang/expansion, Expand.
 */
export function expand(text: string, look: (name: string) => string): string {
  let out = "";
  for (let i = 0; i < text.length; i++) {
    const next = text[i + 1];
    if (text[i] !== "$" || next === undefined) {
      out += text[i];
    } else if (next === "(") {
      const end = text.indexOf(")", i + 2);
      out += end < 0 ? "$(" : look(text.slice(i + 2, end));
      i = end < 0 ? i + 1 : end;
    } else {
      out += next === "$" ? "$" : `$${next}`;
      i++;
    }
  }
  return out;
}

/** Of a variable that nobody set, the reference stays. */
export const knownOrItself =
  (known: ReadonlyMap<string, string>) =>
  (name: string): string =>
    known.get(name) ?? `$(${name})`;

export const pairsToMap = (env: readonly EnvPair[]): ReadonlyMap<string, string> =>
  new Map(env.map(({ key, value }) => [key, value]));

/** A command or its arguments. kubelet 1.36: ExpandContainerCommandAndArgs. */
export function expandAll(texts: readonly string[], env: readonly EnvPair[]): readonly string[] {
  const look = knownOrItself(pairsToMap(env));
  return texts.map((text) => expand(text, look));
}

/** A `subPathExpr`, which needs a value of every variable. kubelet 1.36: ExpandContainerVolumeMounts. */
export function expandSubPath(expression: string, env: readonly EnvPair[]): Result<string, string> {
  const known = pairsToMap(env);
  const missing = new Set<string>();
  const expanded = expand(expression, (name) => {
    const value = known.get(name) ?? "";
    if (value === "") missing.add(name);
    return value;
  });
  return missing.size > 0 ? err(`missing value for ${[...missing].sort().join(", ")}`) : ok(expanded);
}
