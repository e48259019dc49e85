import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * By turns. First what the clock drives, and what therefore costs more processor time the longer it lasts: virtual machines and
 * clusters. Beside them go those that wait the most. Of the rest some last, and are small files: begun last, they would run
 * when all else is through.
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

/** The order of vitest (each project's what took long before, or is large, comes first), by turns. */
export default class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => turnOf(one) - turnOf(other));
  }
}
