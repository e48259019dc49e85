/** How many of the last answers are kept, and of how many characters each may be with its question. */
const MOST = 128;
const LONGEST = 256 * 1024;

export interface Recall<A> {
  /** The answer that was kept for the slot, if it answers exactly this question. */
  find(slot: string, question: readonly string[]): A | undefined;
  /** Keeps the answer, in the place of the slot's last one. `length` is the answer's own, in characters. */
  keep(slot: string, question: readonly string[], answer: A, length: number): void;
}

/** The last answers by their whole questions: what is found is what would be worked out again. */
export function recall<A>(): Recall<A> {
  const kept = new Map<string, { readonly question: readonly string[]; readonly answer: A }>();
  return {
    find: (slot, question) => {
      const last = kept.get(slot);
      if (last === undefined || last.question.length !== question.length) return undefined;
      return last.question.every((part, i) => part === question[i]) ? last.answer : undefined;
    },
    keep: (slot, question, answer, length) => {
      kept.delete(slot);
      if (question.reduce((sum, part) => sum + part.length, length) > LONGEST) return;
      kept.set(slot, { question, answer });
      if (kept.size > MOST) kept.delete(kept.keys().next().value as string);
    },
  };
}
