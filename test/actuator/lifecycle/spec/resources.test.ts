import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { shown } from "../../../../actuator/lifecycle/spec/field-value.ts";
import { joinPath } from "../../../../api/base/input-issue.ts";
import { type Fields, linesOf, podObject } from "./sample.ts";

interface Case {
  readonly name: string;
  readonly spec: Fields & { readonly containers: readonly { readonly resources?: { readonly requests?: unknown } }[] };
  /** The errors of Kubernetes 1.36.3's own ValidatePodCreate, with the defaults of SetObjectDefaults_Pod. */
  readonly faults: readonly string[];
}
const CASES: readonly Case[] = JSON.parse(
  readFileSync(new URL("../../../data/lifecycle/resources.json", import.meta.url), "utf8"),
);

const KEY = /^(.*\.(?:limits|requests))\[(.+?)\]: (.*)$/s;
/** Converts a fault of Kubernetes to our format of paths and shortened values. */
const inOurFormat = (fault: string): string => {
  const [, list, name, message] = KEY.exec(fault) ?? [];
  if (list === undefined || name === undefined) return fault;
  const said = message?.replace(/^(Invalid|Unsupported) value: ("[^"]*")/, (_, kind, value) => {
    return `${kind} value: ${shown(JSON.parse(value))}`;
  });
  return `${joinPath(list, [name])}: ${said}`;
};
/** Kubernetes uses a limit without a request as the request too, and reports its fault a second time. */
const isRepeated = (fault: string, { faults, spec }: Case): boolean =>
  spec.containers[0]?.resources?.requests === undefined && faults.includes(fault.replace(".requests[", ".limits["));

describe("resources are validated as by the API server, in its words", () => {
  test.each(CASES.filter(({ name }) => !name.endsWith("kubernetes.io")))("$name", (one) => {
    const kubernetes = one.faults.filter((fault) => !fault.includes(".requests[") || !isRepeated(fault, one));
    expect(linesOf(podObject(one.spec)).toSorted()).toEqual(kubernetes.map(inOurFormat).toSorted());
  });
  test("the cases contain valid and invalid resources", () => {
    expect(CASES.filter(({ faults }) => faults.length === 0).length).toBeGreaterThan(8);
    expect(CASES.filter(({ faults }) => faults.length > 0).length).toBeGreaterThan(25);
  });
});
