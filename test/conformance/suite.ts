import type { Profile } from "../../api/profiles/profile.ts";

/** One suite: check the input once, decide, and write the answer as the suite's file has it. */
interface SuiteOf<Input, Read, Decided> {
  readonly read: (input: Input, profile: Profile) => Read;
  readonly decide: (read: Read, profile: Profile) => Decided | Promise<Decided>;
  readonly show: (decided: Decided) => unknown;
  /** The expected answer written in the same way, where the file has it in another notation. */
  readonly expected?: (out: never) => unknown;
  /** The same question, where the kubelet's answer hung on chance: a case is passed when one of them has its answer. */
  readonly alike?: (read: Read) => readonly Read[];
}
// biome-ignore lint/suspicious/noExplicitAny: the suites have no common shape, and each is checked where it is made
export type Suite = SuiteOf<any, any, any>;
export const suite = <Input, Read, Decided>(s: SuiteOf<Input, Read, Decided>): Suite => s;
