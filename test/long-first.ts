import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The order of the tests. First come tests that the clock drives, and that therefore cost more CPU time the longer they
 * last: virtual machines and clusters. With them come the tests that wait the most. Then come tests that take long
 * although their files are small: started last, they would still run when everything else has finished.
 */
const TURNS: readonly ((path: string, project: string) => boolean)[] = [
  (path) => /\/test\/e2e\/(?:systemd|pods-v2|cgroup-v2|cluster\/)/.test(path),
  (_, project) => ["e2e", "alone"].includes(project),
  (path) => /\/test\/(?:fuzz\/|workers\/|ui\/(?:worker|every-page)|sim\/pods)/.test(path),
];
function turnOf({ moduleId, project }: TestSpecification): number {
  const turn = TURNS.findIndex((is) => is(moduleId, project.name));
  return turn < 0 ? TURNS.length : turn;
}

/**
 * Sorts by turns; within a turn it keeps vitest's order, in which files that took long before, or that are large, come
 * first in their project.
 */
export default class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => turnOf(one) - turnOf(other));
  }
}
