import { distanceOf } from "../../../api/base/near-name.ts";
import type { FieldValue, Served } from "./field-value.ts";

const LONGEST = 64;

/** The one of `known` that `name` was likely meant to be; undefined: none is near. Ties go to the first. */
export function nearName(name: string, known: readonly string[]): string | undefined {
  if (name.length > LONGEST) return undefined;
  const most = Math.max(1, Math.floor(name.length / 4));
  let best: string | undefined;
  let fewest = most + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= fewest) continue;
    const changes = distanceOf(name.toLowerCase(), candidate.toLowerCase(), fewest - 1);
    if (changes < fewest) {
      best = candidate;
      fewest = changes;
    }
  }
  return best;
}

/** The treatment of a field of v1: it is supported, it needs nothing here, or the pod is refused because of it. */
export type Rule = Treatment & {
  /** The field's name in `Profile.podFields`; absent: every version has the field. */
  readonly only?: string;
};
type Treatment =
  | { readonly kind: "done" }
  | { readonly kind: "accepted"; readonly why: string }
  | {
      readonly kind: "refused";
      /** Why, and what to do about it. */
      readonly advice: string;
      /** A value that has no effect. */
      readonly harmless: unknown;
      /** A feature of the daemon with which the field is supported. */
      readonly unless?: keyof Served;
    };
export type FieldRules = Readonly<Record<string, Rule>>;

export const done: Rule = { kind: "done" };
export const accepted = (why: string): Rule => ({ kind: "accepted", why });
export const refused = (advice: string, harmless?: unknown): Rule => ({ kind: "refused", advice, harmless });
/** Accepts the field if this daemon serves `what`. */
export const unlessServed = (what: keyof Served, advice: string): Rule => ({
  kind: "refused",
  advice,
  harmless: undefined,
  unless: what,
});
/** A rule for a field that only some kubelet versions have. */
export const forTypes = (only: string, rule: Rule): Rule => ({ ...rule, only });
/** A row of one rule for several fields. */
export const each = (names: string, rule: Rule): FieldRules =>
  Object.fromEntries(names.split(" ").map((name) => [name, rule]));

/**
 * Reports every field of an object that is refused or that v1 does not have. Fields of other versions that have no effect here
 * are ignored, as in a kubelet, which leaves out unknown fields. False: the value is no object.
 */
export function checkFields(at: FieldValue, rules: FieldRules): boolean {
  if (!at.isObject()) return false;
  for (const name of at.keys) {
    if (at.isHopeless) break;
    const field = at.field(name);
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined) {
      const near = nearName(name, Object.keys(rules));
      field.fault(`no such field${near === undefined ? "" : `; \`${near}\`?`}`);
    } else if (rule.kind === "refused" && !at.serves(rule.unless) && !field.isEmpty && field.value !== rule.harmless) {
      field.fault(at.lacks(rule.only) ?? rule.advice);
    }
  }
  return true;
}
