import type { Numbers } from "../../model/decision.ts";

/** What one reason code says, with the numbers that it was given. */
export type Words = (n: Numbers) => string;
/** Code -> its sentence. */
export type Sentences = Readonly<Record<string, Words>>;

/** `1 pod`, `3 pods`. */
export const many = (count: unknown, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`;

/** `a`, `a and b`, `a, b and c`. */
export const listed = (items: readonly string[]): string =>
  items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;

const ORDINALS = new Intl.PluralRules("en", { type: "ordinal" });
const SUFFIX: Readonly<Record<string, string>> = { one: "st", two: "nd", few: "rd" };
/** `1st`, `12th`. */
export const ordinal = (n: number): string => `${n}${SUFFIX[ORDINALS.select(n)] ?? "th"}`;
