import { BaseSequencer, type TestSpecification } from "vitest/node";

/** They last, and some of their files are small: begun last, they would run when all else is through. */
const LONG =
  /\/test\/(?:e2e\/(?:systemd|pods-v2|cgroup-v2|cluster\/)|fuzz\/|docs\/commands|workers\/|ui\/(?:worker|every-page)|sim\/pods)/;

/** What is begun first: 0 for the long ones, 1 for those that wait the most, beside which the long ones have a processor. */
function turnOf({ moduleId, project }: TestSpecification): number {
  if (LONG.test(moduleId)) return 0;
  return project.name === "e2e" ? 1 : 2;
}

/** The order of vitest (each project's what took long before, or is large, comes first), by turns. */
export default class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => turnOf(one) - turnOf(other));
  }
}
