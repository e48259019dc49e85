import type { CommandLine, FlagSpec, GateSpec } from "./profile.ts";

/** Lines of `HEAD: ENTRIES`; a line indented by more than two spaces continues the one before. */
const linesOf = (table: string): readonly (readonly [head: string, entries: readonly string[]])[] =>
  table
    .trim()
    .split(/\n {2}(?! )/)
    .map((line) => {
      const [head = "", entries = ""] = line.trim().split(": ");
      return [head, entries.split(/\s+/)];
    });

/**
 * Reads lines `STAGE on|off [locked]: GATE...` that change the gates of the previous version: `*` before a new gate means that the
 * kubelet reads it, `<A,B` after one the gates that it requires. A line `removed: GATE...` removes gates.
 */
export function gatesOf(table: string, before?: ReadonlyMap<string, GateSpec>): ReadonlyMap<string, GateSpec> {
  const gates = new Map(before);
  for (const [head, entries] of linesOf(table)) {
    const [stage, isOn, locked] = head.split(" ");
    for (const entry of entries) {
      const isMarked = entry.startsWith("*");
      const [name = "", required = ""] = (isMarked ? entry.slice(1) : entry).split("<");
      if (head === "removed") gates.delete(name);
      else {
        gates.set(name, {
          stage: stage as GateSpec["stage"],
          isOn: isOn === "on",
          locked: locked === "locked",
          requires: required === "" ? [] : required.split(","),
          isKubeletGate: isMarked || before?.get(name)?.isKubeletGate === true,
        });
      }
    }
  }
  return gates;
}

/** Reads lines `GO TYPE: PATH...` that change the fields of the previous version. */
export const fieldsOf = (table: string, before?: ReadonlyMap<string, string>): ReadonlyMap<string, string> =>
  new Map([
    ...(before ?? []),
    ...linesOf(table).flatMap(([type, paths]) => paths.map((path) => [path, type] as const)),
  ]);

const OF_FILE =
  "This parameter should be set via the config file specified by the Kubelet's --config flag. See https://kubernetes.io/docs/tasks/administer-cluster/kubelet-config-file/ for more information.";

/**
 * Reads lines `field: FLAG...` or `field deprecated: FLAG...` of flags that set a field (`FLAG=FIELD` if the names differ), and
 * lines `GO TYPE: FLAG...` of the others. `deprecated`: the deprecation messages by flag.
 */
export function flagsOf(
  table: string,
  fields: ReadonlyMap<string, string>,
  deprecated: ReadonlyMap<string, string>,
): CommandLine {
  const alike = new Map([...fields.keys()].map((field) => [field.toLowerCase(), field]));
  const flags = linesOf(table).flatMap(([head, entries]) =>
    entries.map((entry): [string, FlagSpec] => {
      const [name = "", named = alike.get(name.replaceAll("-", "")) ?? ""] = entry.split("=");
      if (!head.startsWith("field"))
        return [name, { field: null, type: head, deprecated: deprecated.get(name) ?? null }];
      const type = fields.get(named);
      if (type === undefined) throw new Error(`the flag ${name} sets no field`);
      return [name, { field: named, type, deprecated: head === "field" ? null : OF_FILE }];
    }),
  );
  return new Map(flags);
}
export const withoutFlags = (flags: CommandLine, names: readonly string[]): CommandLine =>
  new Map([...flags].filter(([name]) => !names.includes(name)));
