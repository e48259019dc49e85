import { expect } from "vitest";
import type { FindingCode } from "../../api/model/finding-numbers.ts";
import {
  type Finding,
  type FindingOf,
  type Story,
  type StoryList,
  storyForm,
  storyListForm,
} from "../../api/model/why.ts";
import type { StoryFailure } from "../../api/service/why/story.ts";
import { storiesIn, storyOf } from "../../api/service/why/story.ts";

export const documentsOf = (values: readonly unknown[]) => values.map((value, i) => ({ origin: `file ${i}`, value }));

/** The story of a pod, whose form the API's document has; none fails the test. */
export function story(pod: string, values: readonly unknown[], namespace: string | null = null): Story {
  const answer = storyOf(documentsOf(values), { pod, namespace });
  if (!answer.ok) throw new Error(`${answer.error.code}: ${answer.error.message}`);
  expect(storyForm.safeParse(JSON.parse(JSON.stringify(answer.value))).error).toBeUndefined();
  return answer.value;
}
export function noStory(pod: string, values: readonly unknown[], namespace: string | null = null): StoryFailure {
  const answer = storyOf(documentsOf(values), { pod, namespace });
  if (answer.ok) throw new Error(`told: ${JSON.stringify(answer.value.findings)}`);
  return answer.error;
}
export function stories(values: readonly unknown[], namespace: string | null = null): StoryList {
  const answer = storiesIn(documentsOf(values), namespace);
  if (!answer.ok) throw new Error(`${answer.error.code}: ${answer.error.message}`);
  expect(storyListForm.safeParse(JSON.parse(JSON.stringify(answer.value))).error).toBeUndefined();
  return answer.value;
}

export const codes = ({ findings }: Story): readonly FindingCode[] => findings.map(({ code }) => code);
/** The finding of a code; none fails the test. */
export function only<C extends FindingCode>({ findings }: Story, code: C): FindingOf<C> {
  const found = findings.filter((one): one is Finding & FindingOf<C> => one.code === code);
  expect(found.map((one) => one.code)).toEqual([code]);
  return found[0] as FindingOf<C>;
}
export const pieces = ({ missing }: Story): readonly string[] => missing.map(({ piece }) => piece);
