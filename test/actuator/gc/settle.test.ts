import { expect, test } from "vitest";
import type { Runtime } from "../../../actuator/containerd/cri.ts";
import type { DecisionAnswer } from "../../../actuator/core/interfaces.ts";
import type { GcDeps } from "../../../actuator/gc/dependencies.ts";
import type { GcJournal, InterruptedPass } from "../../../actuator/gc/journal.ts";
import { closeInterruptedPass } from "../../../actuator/gc/remove.ts";
import { err, ok } from "../../../api/base/result.ts";
import { faultOf } from "../../sim/fake-runtime.ts";

const PASS: InterruptedPass = {
  kind: "image-gc",
  operation: "delete-unused",
  snapshot: { a: 1 },
  planned: ["w", "x", "y", "z"],
  done: [{ id: "w", end: "failed", message: "busy" }],
  fileSystem: { capacityBytes: 10, availableBytes: 3 },
  unknown: [
    { id: "x", runtimeHandler: "kata", target: "image" },
    { id: "y", runtimeHandler: "", target: "image" },
    { id: "z", runtimeHandler: "", target: "image" },
  ],
};
const UNKNOWN_ENDS = [
  PASS.done[0],
  { id: "x", runtimeHandler: "kata", end: "removed", message: "found gone after a restart" },
  { id: "z", end: "removed", message: "found gone after a restart" },
];
const ANSWER = { id: "d1" } as DecisionAnswer;

/** A daemon that starts after a crash; of the images only `y` exists. */
function restarted(
  over: {
    readonly unclosed?: ReturnType<GcJournal["unclosed"]>;
    readonly close?: ReturnType<GcJournal["close"]>;
    readonly imageNow?: Runtime["imageNow"];
    readonly answer?: Awaited<ReturnType<GcDeps["client"]["decide"]>>;
  } = {},
) {
  const reported: unknown[] = [];
  const { unclosed = ok(PASS), close = ok(null), answer = ok(ANSWER) } = over;
  const ports = {
    journal: {
      unclosed: () => unclosed,
      close: () => {
        reported.push("closed");
        return close;
      },
    },
    runtime: {
      imageNow: over.imageNow ?? (async (id: string) => ok(id === "y" ? { id } : null)),
    },
    client: {
      decide: async (...asked: readonly unknown[]) => {
        reported.push(asked);
        return answer;
      },
      commit: async (one: DecisionAnswer) => void reported.push(one),
    },
  };
  return { reported, settled: () => closeInterruptedPass(ports as unknown as GcDeps) };
}

test("an interrupted pass is reported with all its ends, then stored, then closed in the journal", async () => {
  const { reported, settled } = restarted();
  expect(await settled()).toEqual(ok({ kind: "image-gc", done: UNKNOWN_ENDS, left: ["y"], answer: ANSWER }));
  const ask = { operation: "delete-unused", done: UNKNOWN_ENDS, fileSystem: PASS.fileSystem };
  expect(reported).toEqual([["image-gc", { a: 1 }, ask], ANSWER, "closed"]);
});

test("an interrupted pass without a measurement after removing old images is reported without one", async () => {
  const { reported, settled } = restarted({ unclosed: ok({ ...PASS, fileSystem: null, unknown: [] }) });
  await settled();
  expect(reported[0]).toEqual(["image-gc", { a: 1 }, { operation: "delete-unused", done: PASS.done }]);
});

test("without a journal or an unclosed pass there is nothing to settle", async () => {
  const { reported, settled } = restarted({ unclosed: ok(null) });
  expect(await settled()).toEqual(ok(null));
  expect(reported).toEqual([]);
  expect(await closeInterruptedPass({ journal: null } as unknown as GcDeps)).toEqual(ok(null));
});

test("an unreadable journal, or a runtime without an answer, keeps everything else from being removed", async () => {
  const unread = restarted({ unclosed: err({ code: "journal_unreadable", message: "EIO" }) as never });
  const unreadable = "EIO; nothing is removed until it can be read";
  expect(await unread.settled()).toEqual(err({ from: "journal", message: unreadable }));
  let questions = 0;
  // the last question is not answered
  const imageNow = async () => (++questions < 3 ? ok(null) : err(faultOf("ImageStatus", "UNAVAILABLE", "gone")));
  const blind = restarted({ imageNow });
  const message = "a pass that was interrupted: ImageStatus: UNAVAILABLE: gone";
  expect(await blind.settled()).toEqual(err({ from: "runtime", message }));
  expect([...unread.reported, ...blind.reported]).toEqual([]);
});

test("a pass refused for good is reported and closed; a journal that cannot be closed is reported", async () => {
  const problem = { from: "decision", message: "no" } as const;
  const refused = restarted({ answer: err(problem) });
  expect(await refused.settled()).toEqual(err(problem));
  expect(refused.reported.slice(1)).toEqual(["closed"]);
  const stuck = restarted({ close: err({ code: "journal_unwritable", message: "EROFS" }) as never });
  const unwritable = "EROFS; nothing is removed until it can be written";
  expect(await stuck.settled()).toEqual(err({ from: "journal", message: unwritable }));
});
