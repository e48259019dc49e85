/** A fault of the input: where (a JSON path such as `pods[3].spec.containers`) and what. */
export interface InputIssue {
  readonly path: string;
  readonly message: string;
  /** The similar word that may have been meant. */
  readonly near?: string;
}

export function joinPath(at: string, path: readonly PropertyKey[]): string {
  let out = at;
  for (const key of path) {
    if (typeof key === "number") out += `[${key}]`;
    else if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(String(key))) out += out === "" ? String(key) : `.${String(key)}`;
    else out += `[${JSON.stringify(String(key))}]`;
  }
  return out === "" ? "$" : out;
}
