import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "vitest";
import { run } from "./run.ts";

/**
 * Checks the JSON that a command printed against the schema that `nodewise schema NAME` prints; an additional member is
 * a fault.
 */
export async function expectPublished(name: string, printed: string): Promise<void> {
  const { stdout } = await run(["schema", name]);
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
  const isValid = ajv.compile(JSON.parse(stdout));
  isValid(JSON.parse(printed));
  expect(isValid.errors ?? [], name).toEqual([]);
  expect(isValid(7), name).toBe(false);
}
