import { raw, html as template } from "hono/html";
import { visible } from "../text/style.ts";

export { raw };
export type Html = ReturnType<typeof template>;

/**
 * A template of HTML. Everything in it is escaped but other templates, and control characters of a text show as the pictures
 * and codes that `visible` has for them.
 */
export const html = (strings: TemplateStringsArray, ...values: readonly unknown[]): Html =>
  template(strings, ...values.map(shown));

const shown = (value: unknown): unknown => {
  if (typeof value === "string") return visible(value);
  return Array.isArray(value) ? value.map(shown) : value;
};

/** The text that a form sends back: escaped, and otherwise left as it was typed. */
export const asTyped = (text: string): Html => template`${text}`;
