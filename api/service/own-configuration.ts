import { type Fields, isObject } from "../model/own.ts";
import type { Profile } from "../profiles/profile.ts";
import { namesEveryField } from "../profiles/unknown-fields.ts";
import { differences } from "./difference.ts";

/** A configuration without its /configz wrapper. */
export const membersOf = (configuration: unknown): Fields => {
  const inner = isWrapped(configuration) ? configuration["kubeletconfig"] : configuration;
  return isObject(inner) ? inner : {};
};
export const isWrapped = (configuration: unknown): configuration is Fields =>
  isObject(configuration) && isObject((configuration as Fields)["kubeletconfig"]);

interface OwnConfiguration {
  readonly configuration: Fields;
  /** Fields that were taken out. */
  readonly assumed: readonly string[];
}

/**
 * What a kubelet's file says, of what that kubelet tells of itself. It names all fields then, and a default of the old version
 * is no wish of anybody: it goes where the new version has another. One that leaves any field out is taken as it is.
 */
export function ownConfiguration(given: Fields, from: Profile, to: Profile): OwnConfiguration {
  if (!namesEveryField(given, from)) return { configuration: given, assumed: [] };
  const assumed = Object.keys(from.defaults).filter(
    (name) => isSame(given[name], from.defaults[name]) && !isSame(from.defaults[name], to.defaults[name]),
  );
  const own = Object.entries(given).filter(([name]) => !assumed.includes(name));
  return { configuration: Object.fromEntries(own), assumed };
}

const isSame = (a: unknown, b: unknown): boolean => differences(a, b).length === 0;
