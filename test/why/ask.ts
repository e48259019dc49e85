import { expect } from "vitest";
import type { FindingCode } from "../../api/model/finding-numbers.ts";
import {
  type Finding,
  type FindingOf,
  type PodExplanation,
  type PodExplanationList,
  podExplanationForm,
  podExplanationListForm,
} from "../../api/model/why.ts";
import type { PodExplanationFailure } from "../../api/service/why/pod-explanation.ts";
import { explainPod, explainPods } from "../../api/service/why/pod-explanation.ts";

export const documentsOf = (values: readonly unknown[]) => values.map((value, i) => ({ origin: `file ${i}`, value }));

/** The explanation of a pod, checked against the API's schema; throws if there is none. */
export function story(pod: string, values: readonly unknown[], namespace: string | null = null): PodExplanation {
  const answer = explainPod(documentsOf(values), { pod, namespace });
  if (!answer.ok) throw new Error(`${answer.error.code}: ${answer.error.message}`);
  expect(podExplanationForm.safeParse(JSON.parse(JSON.stringify(answer.value))).error).toBeUndefined();
  return answer.value;
}
export function noExplanation(
  pod: string,
  values: readonly unknown[],
  namespace: string | null = null,
): PodExplanationFailure {
  const answer = explainPod(documentsOf(values), { pod, namespace });
  if (answer.ok) throw new Error(`told: ${JSON.stringify(answer.value.findings)}`);
  return answer.error;
}
export function stories(values: readonly unknown[], namespace: string | null = null): PodExplanationList {
  const answer = explainPods(documentsOf(values), namespace);
  if (!answer.ok) throw new Error(`${answer.error.code}: ${answer.error.message}`);
  expect(podExplanationListForm.safeParse(JSON.parse(JSON.stringify(answer.value))).error).toBeUndefined();
  return answer.value;
}

export const codes = ({ findings }: PodExplanation): readonly FindingCode[] => findings.map(({ code }) => code);
/** The finding with a code; throws if there is none. */
export function only<C extends FindingCode>({ findings }: PodExplanation, code: C): FindingOf<C> {
  const found = findings.filter((one): one is Finding & FindingOf<C> => one.code === code);
  expect(found.map((one) => one.code)).toEqual([code]);
  return found[0] as FindingOf<C>;
}
export const pieces = ({ missing }: PodExplanation): readonly string[] => missing.map(({ piece }) => piece);
