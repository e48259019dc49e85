import type { Profile } from "../../api/profiles/profile.ts";

/** One suite: it decodes the input once, decides, and writes the answer in the form of the suite's file. */
interface SuiteOf<Input, Read, Decided> {
  readonly read: (input: Input, profile: Profile) => Read;
  readonly decide: (read: Read, profile: Profile) => Decided | Promise<Decided>;
  readonly show: (decided: Decided) => unknown;
  /** Converts the expected answer to the same form, if the file uses another notation. */
  readonly expected?: (out: never) => unknown;
  /**
   * The same request in other orders, where the kubelet's answer depends on chance: a case passes if one of them gives
   * its answer.
   */
  readonly alike?: (read: Read) => readonly Read[];
}
// biome-ignore lint/suspicious/noExplicitAny: the suites have no common type; each is type-checked where it is defined
export type Suite = SuiteOf<any, any, any>;
export const suite = <Input, Read, Decided>(s: SuiteOf<Input, Read, Decided>): Suite => s;
