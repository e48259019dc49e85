import { expect, test } from "vitest";
import { podExplanationForm, podExplanationListForm } from "../../api/model/why.ts";
import { explainPod, explainPods } from "../../api/service/why/pod-explanation.ts";
import { plainPaint } from "../../api/text/style.ts";
import { podExplanationListText, podExplanationText } from "../../api/text/why.ts";
import {
  admissionStories,
  evictionStories,
  preemptionStories,
  probeStories,
  type RealStory,
} from "../why/real-documents.ts";
import { changed, drawn, places } from "./changes.ts";
import { draws, shuffled } from "./draws.ts";

const REAL: readonly RealStory[] = [
  ...admissionStories(),
  ...preemptionStories(),
  ...probeStories(),
  ...evictionStories("memory"),
  ...evictionStories("disk"),
];
const named = (values: readonly unknown[]) => values.map((value, i) => ({ origin: `file ${i}`, value }));
/** Splits lists, so that each object is a separate document. */
const apart = (values: readonly unknown[]): readonly unknown[] =>
  values.flatMap((value) => (value as { items?: readonly unknown[] }).items ?? [value]);
const ROUNDS = 300;
const screen = { columns: 100, paint: plainPaint };
// biome-ignore lint/suspicious/noControlCharactersInRegex: characters that a terminal interprets
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202e]/;

test("randomly changed documents get an explanation in the described form, or a refusal of one line", () => {
  const met = { answered: 0, refused: 0 };
  for (let seed = 0; seed < ROUNDS; seed++) {
    const d = draws(seed);
    const { pod, documents } = d.pick(REAL);
    let all: unknown = documents;
    for (let left = 1 + d.below(4); left > 0; left--) {
      const at = places(all);
      if (at.length > 0) all = changed(all, d.pick(at), drawn(d));
    }
    const values = Array.isArray(all) ? (all as readonly unknown[]) : [all];
    const answer = explainPod(named(values), { pod, namespace: null });
    met[answer.ok ? "answered" : "refused"]++;
    if (answer.ok) {
      const form = podExplanationForm.safeParse(JSON.parse(JSON.stringify(answer.value)));
      expect(form.error, `seed ${seed}`).toBeUndefined();
      expect(podExplanationText(answer.value, screen), `seed ${seed}`).not.toMatch(STEERING);
    } else expect(answer.error.message, `seed ${seed}`).not.toBe("");
    const list = explainPods(named(values), null);
    if (!list.ok) continue;
    expect(
      podExplanationListForm.safeParse(JSON.parse(JSON.stringify(list.value))).error,
      `seed ${seed}`,
    ).toBeUndefined();
    expect(podExplanationListText(list.value, screen), `seed ${seed}`).not.toMatch(STEERING);
  }
  expect(Math.min(met.answered, met.refused), `a branch was hardly met: ${JSON.stringify(met)}`).toBeGreaterThan(10);
});

test("the explanation does not depend on the order of documents, or on whether they come in lists", () => {
  for (const [seed, { pod, documents }] of REAL.entries()) {
    const of = (values: readonly unknown[]) => {
      const answer = explainPod(named(values), { pod, namespace: null });
      return answer.ok
        ? { findings: answer.value.findings, asOf: answer.value.asOf, missing: answer.value.missing }
        : answer.error;
    };
    expect(of(shuffled(apart(documents), draws(seed))), pod).toEqual(of(documents));
  }
});
