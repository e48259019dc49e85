import { stringify } from "yaml";
import type { Terminal } from "./terminal.ts";

export type Form = "table" | "json" | "yaml";

/** Prints a value whole, in a form that nodewise (and Kubernetes' tools) read back as the same value. */
export function printData(terminal: Terminal, value: unknown, form: "json" | "yaml"): void {
  const json = JSON.stringify(value, null, 2);
  terminal.write(form === "json" ? `${json}\n` : yamlOf(JSON.parse(json)));
}

/** Kubernetes reads YAML 1.1, where `yes`, `0644` and `12:30` need quotes. */
const yamlOf = (value: unknown): string =>
  stringify(value, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false });
