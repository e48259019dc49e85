import { expect, test } from "vitest";
import { PodWorkQueue } from "../../../actuator/pods/sync/pod-work-queue.ts";

test("only work that made progress wakes the daemon, and each pod has one piece of work at a time", async () => {
  let woken = 0;
  const problems: string[] = [];
  const errands = new PodWorkQueue({ onWorked: () => woken++, onProblem: ({ message }) => problems.push(message) });
  let begun = 0;
  const work = (answer: boolean) => async () => {
    begun++;
    return answer;
  };
  errands.begin("uid-1", work(false));
  errands.begin("uid-1", work(true));
  await errands.rest();
  expect([begun, woken]).toEqual([1, 0]);
  errands.begin("uid-1", work(true));
  errands.begin("uid-2", async () => Promise.reject(new Error("broken")));
  await errands.rest();
  expect([begun, woken, problems, errands.size]).toEqual([2, 1, ["unexpected: broken"], 0]);
});
