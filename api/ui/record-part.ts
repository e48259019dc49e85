import { html } from "hono/html";
import type { DecisionHead } from "../../db/store.ts";
import { POLICY_VERSION } from "../model/decision.ts";
import { errorFields, type Log } from "../observe/log.ts";
import type { Exchange } from "../routes/route.ts";
import type { Html } from "./page.ts";

type Drawn = Pick<DecisionHead, "id" | "policyVersion">;
/** Is told of a record that could not be drawn, and why. */
export type Undrawn = (record: Drawn, error: unknown) => void;

/** Writes it to the log: what is damaged and a mistake of this program look the same. */
export function undrawnIn({ ports, requestId }: Pick<Exchange, "ports" | "requestId">): Undrawn {
  return ({ id, policyVersion }, error) => {
    const level: keyof Log = policyVersion === POLICY_VERSION ? "error" : "warn";
    ports.log[level]({ requestId, decision: id, policyVersion, ...errorFields(error) }, "a record cannot be drawn");
  };
}

/**
 * What is made of a recorded decision; null: it has not the form that it needs. The one place that catches this: of a record
 * only the outermost form is checked when it is read, and each kind has its own.
 */
export async function tryDrawing<T>(record: Drawn, undrawn: Undrawn, draw: () => T): Promise<Awaited<T> | null> {
  try {
    return await draw();
  } catch (error) {
    undrawn(record, error);
    return null;
  }
}

/** The same as a part of a page, which says so where nothing can be drawn. */
export async function recordPart(record: Drawn, undrawn: Undrawn, draw: () => Html | Promise<Html>): Promise<Html> {
  return (await tryDrawing(record, undrawn, draw)) ?? notDrawn(record);
}

/** What stands in the place of a part that cannot be drawn. */
export const notDrawn = ({ id, policyVersion }: Drawn): Html =>
  html`<div class="note warn"><p>${
    policyVersion === POLICY_VERSION
      ? "This part of the record cannot be shown: it has not the form that this version writes, so it is damaged."
      : `What the policy ${policyVersion} decided cannot be drawn by this version.`
  } <a href="/v1/decisions/${id}">The JSON</a> has all that is stored.</p></div>`;
