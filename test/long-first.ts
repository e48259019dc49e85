import { BaseSequencer, type TestSpecification } from "vitest/node";

/** They last as long as they are told to, and their files are small: begun last, they would run when all else is through. */
const LONG = /\/test\/fuzz\//;

/** The order of vitest (what took long before, or is large, comes first), with those that are known to last in front. */
export default class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification): boolean => LONG.test(moduleId);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}
