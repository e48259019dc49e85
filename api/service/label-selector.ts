import { err, ok, type Result } from "../base/result.ts";

export type Labels = Readonly<Record<string, string>>;

/** One condition on a node's labels. If the label is absent, only `NotIn` and `DoesNotExist` hold. */
export interface Requirement {
  readonly key: string;
  readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
  readonly values: readonly string[];
}

const MAX_REQUIREMENTS = 64;

const NAME = /^[A-Za-z0-9](?:[-\w.]{0,61}[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*$/;

function isKey(text: string): boolean {
  const [name = "", prefix, ...more] = text.split("/").reverse();
  return (
    more.length === 0 && NAME.test(name) && (prefix === undefined || (prefix.length <= 253 && PREFIX.test(prefix)))
  );
}
const isValue = (text: string): boolean => text === "" || NAME.test(text);

/** A comma inside the parentheses of a set separates its values; any other comma separates requirements. */
const REQUIREMENT = /(?:[^,()]|\([^()]*\))+/y;
const FORMS: readonly (readonly [RegExp, Requirement["operator"]])[] = [
  [/^(\S+)\s+in\s*\(([^()]*)\)$/, "In"],
  [/^(\S+)\s+notin\s*\(([^()]*)\)$/, "NotIn"],
  [/^([^\s=!<>]+)\s*!=\s*([^\s=!<>]*)$/, "NotIn"],
  [/^([^\s=!<>]+)\s*==?\s*([^\s=!<>]*)$/, "In"],
  [/^([^\s=!<>]+)\s*>\s*(\S+)$/, "Gt"],
  [/^([^\s=!<>]+)\s*<\s*(\S+)$/, "Lt"],
  [/^!\s*(\S+)$/, "DoesNotExist"],
  [/^(\S+)$/, "Exists"],
];

/**
 * Parses a label selector as `kubectl get -l` does: `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`, `a>1`, `a<1`,
 * joined by commas. Errors: one line that names the invalid part. apimachinery 1.36: labels.Parse.
 */
export function parseLabelSelector(text: string): Result<readonly Requirement[], string> {
  const found: Requirement[] = [];
  if (text.trim() === "") return ok(found);
  for (let at = 0; at <= text.length; ) {
    REQUIREMENT.lastIndex = at;
    const part = REQUIREMENT.exec(text)?.[0] ?? "";
    at += part.length + 1;
    const requirement = requirementOf(part.trim());
    if (!requirement.ok) return requirement;
    // the next character must be a comma, not an unmatched parenthesis
    if (at <= text.length && text[at - 1] !== ",") return err(`\`${text.slice(0, 200)}\` has a parenthesis too many`);
    found.push(requirement.value);
  }
  return found.length <= MAX_REQUIREMENTS ? ok(found) : err(`has more than ${MAX_REQUIREMENTS} requirements`);
}

function requirementOf(part: string): Result<Requirement, string> {
  const shown = `\`${part.slice(0, 200)}\``;
  for (const [form, operator] of FORMS) {
    const match = form.exec(part);
    if (match === null) continue;
    const [, key = "", list] = match;
    if (!isKey(key)) return err(`${shown}: \`${key.slice(0, 100)}\` is not the key of a label`);
    const values =
      list === undefined ? [] : /^(?:In|NotIn)$/.test(operator) ? list.split(",").map((v) => v.trim()) : [list];
    const wrong =
      operator === "Gt" || operator === "Lt"
        ? values.find((v) => !/^\d{1,15}$/.test(v))
        : values.find((v) => !isValue(v));
    if (wrong !== undefined) return err(`${shown}: \`${wrong.slice(0, 100)}\` cannot be compared with a label`);
    return ok({ key, operator, values });
  }
  return err(
    `${shown} is no requirement; write KEY=VALUE, KEY!=VALUE, KEY in (A,B), KEY notin (A,B), KEY or !KEY, joined by commas`,
  );
}

/** Whether labels meet every requirement. apimachinery 1.36: Requirement.Matches. */
export const selects = (selector: readonly Requirement[], labels: Labels): boolean =>
  selector.every(({ key, operator, values }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
    if (operator === "DoesNotExist") return value === undefined;
    if (operator === "NotIn") return value === undefined || !values.includes(value);
    if (value === undefined) return false;
    if (operator === "In") return values.includes(value);
    if (operator === "Exists") return true;
    if (!/^-?\d{1,15}$/.test(value)) return false;
    return operator === "Gt" ? Number(value) > Number(values[0]) : Number(value) < Number(values[0]);
  });
