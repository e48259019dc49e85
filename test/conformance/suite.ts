/** One suite: check the input once, decide, and write the answer as the suite's file has it. */
interface SuiteOf<Input, Read, Decided> {
  readonly read: (input: Input) => Read;
  readonly decide: (read: Read) => Decided;
  readonly show: (decided: Decided) => unknown;
}
// biome-ignore lint/suspicious/noExplicitAny: the suites have no common shape, and each is checked where it is made
export type Suite = SuiteOf<any, any, any>;
export const suite = <Input, Read, Decided>(s: SuiteOf<Input, Read, Decided>): Suite => s;
