import { type Fields, isObject } from "../base/own.ts";
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
  /** Fields that were removed. */
  readonly assumed: readonly string[];
}

/**
 * The contents of a kubelet's configuration file, from the configuration that the kubelet reports. A reported one has all fields,
 * so a default of the old version is dropped if the new version has another. A configuration that leaves out any field is used as
 * it is.
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
