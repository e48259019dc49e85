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
  const told = storyOf(documentsOf(values), { pod, namespace });
  if (!told.ok) throw new Error(`${told.error.code}: ${told.error.message}`);
  expect(storyForm.safeParse(JSON.parse(JSON.stringify(told.value))).error).toBeUndefined();
  return told.value;
}
export function noStory(pod: string, values: readonly unknown[], namespace: string | null = null): StoryFailure {
  const told = storyOf(documentsOf(values), { pod, namespace });
  if (told.ok) throw new Error(`told: ${JSON.stringify(told.value.findings)}`);
  return told.error;
}
export function stories(values: readonly unknown[], namespace: string | null = null): StoryList {
  const told = storiesIn(documentsOf(values), namespace);
  if (!told.ok) throw new Error(`${told.error.code}: ${told.error.message}`);
  expect(storyListForm.safeParse(JSON.parse(JSON.stringify(told.value))).error).toBeUndefined();
  return told.value;
}

export const codes = ({ findings }: Story): readonly FindingCode[] => findings.map(({ code }) => code);
/** The finding of a code; none fails the test. */
export function only<C extends FindingCode>({ findings }: Story, code: C): FindingOf<C> {
  const found = findings.filter((one): one is Finding & FindingOf<C> => one.code === code);
  expect(found.map((one) => one.code)).toEqual([code]);
  return found[0] as FindingOf<C>;
}
export const pieces = ({ missing }: Story): readonly string[] => missing.map(({ piece }) => piece);
