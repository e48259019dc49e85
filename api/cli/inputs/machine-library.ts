import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { didYouMean } from "../../base/near-name.ts";
import { expandLayout, type MachineLayout } from "../../machines/layout.ts";
import type { Machine } from "../../model/machine.ts";

export interface LibraryMachine extends Pick<MachineLayout, "description" | "facts"> {
  readonly name: string;
  readonly machine: Machine;
}
const DIR = join(import.meta.dirname, "../../machines");
const EXTENSION = ".json";

/** The names of the machines that come with this program. */
export const machineNames = (): readonly string[] =>
  readdirSync(DIR)
    .filter((file) => file.endsWith(EXTENSION))
    .map((file) => file.slice(0, -EXTENSION.length))
    .sort();

export const suggestMachine = (name: string): string =>
  didYouMean(name, machineNames(), `there are ${machineNames().join(", ")}`);

/** A machine by name; undefined if the library does not have it. */
export function libraryMachine(name: string): LibraryMachine | undefined {
  if (!machineNames().includes(name)) return undefined;
  const layout = JSON.parse(readFileSync(join(DIR, `${name}${EXTENSION}`), "utf8")) as MachineLayout;
  return { name, description: layout.description, facts: layout.facts, machine: expandLayout(layout) };
}
