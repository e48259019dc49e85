import type { At } from "./at.ts";
import { nearName } from "./near.ts";

/** What becomes of a field of v1: it is done, it needs nothing done here, or the pod is refused for it. */
export type Rule =
  | { readonly kind: "done" }
  | { readonly kind: "accepted"; readonly why: string }
  | {
      readonly kind: "refused";
      /** Why, and what to do about it. */
      readonly advice: string;
      /** A value that asks for nothing. */
      readonly harmless: unknown;
    };
export type FieldRules = Readonly<Record<string, Rule>>;

export const done: Rule = { kind: "done" };
export const accepted = (why: string): Rule => ({ kind: "accepted", why });
export const refused = (advice: string, harmless?: unknown): Rule => ({ kind: "refused", advice, harmless });
/** A row of one rule for several fields. */
export const each = (names: string, rule: Rule): FieldRules =>
  Object.fromEntries(names.split(" ").map((name) => [name, rule]));

/** Tells every field of an object that is refused or that v1 does not have. False: it is no object. */
export function checkFields(at: At, rules: FieldRules): boolean {
  if (!at.isObject()) return false;
  for (const name of at.keys) {
    if (at.isHopeless) break;
    const field = at.field(name);
    const rule = Object.hasOwn(rules, name) ? rules[name] : undefined;
    if (rule === undefined) {
      const near = nearName(name, Object.keys(rules));
      field.fault(`no such field${near === undefined ? "" : `; \`${near}\`?`}`);
    } else if (rule.kind === "refused" && !field.isEmpty && field.value !== rule.harmless) field.fault(rule.advice);
  }
  return true;
}
