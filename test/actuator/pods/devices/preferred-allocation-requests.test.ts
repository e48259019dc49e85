import { describe, expect, test } from "vitest";
import { PreferredAllocationRequests } from "../../../../actuator/pods/devices/device-allocator.ts";
import { limited } from "../../../kit/runnable-pods.ts";
import { healthy, until } from "../../deviceplugin/node-plugin.ts";
import { decided, entriesIn, entry, GPU, joined, NIC, nodeWith, ONE } from "./manager-kit.ts";

describe("GetPreferredAllocation", () => {
  const options = { getPreferredAllocationAvailable: true };
  const choice = (...deviceIDs: string[]) => ({ containerResponses: [{ deviceIDs }] });
  const questions = ({ requests }: { requests: { method: string }[] }) =>
    requests.filter(({ method }) => method === "GetPreferredAllocation").length;

  test("is called in the background, once for each question, and the decision uses the answer", async () => {
    const node = await nodeWith();
    const answers = { GetPreferredAllocation: () => choice("c") };
    const gpu = await joined(node, { resource: GPU, devices: healthy("a", "b", "c"), options, answers });
    await joined(node, { resource: NIC, devices: healthy("n") });
    const pod = limited("p", ONE);
    expect(node.manager.isChosenByPlugin(pod)).toBe(true);
    expect(node.manager.isChosenByPlugin(limited("q", { app: { [NIC]: 1 } }))).toBe(false);
    await until(
      () => node.manager.version,
      (version) => version > 1,
    );
    const { unanswered } = decided(node, pod);
    expect(unanswered).toHaveLength(1);
    const { version } = node.manager;
    expect(node.manager.askPreferred("p", unanswered)).toBe(true);
    expect(node.manager.askPreferred("p", unanswered)).toBe(true);
    // device lists of the plugins raise the version too, at any time
    const next = await until(
      () => {
        const now = decided(node, pod);
        if (now.unanswered.length > 0) node.manager.askPreferred("p", now.unanswered);
        return now;
      },
      (now) => now.unanswered.length === 0,
    );
    // the daemon is notified at most four times a second
    await until(
      () => node.manager.version,
      (now) => now > version,
    );
    expect(questions(gpu)).toBe(1);
    expect(node.manager.snapshot("other").devicePlugins[0]?.preferred).toBeUndefined();
    node.files.persist(node.manager.withResponses(next.next));
    expect(entriesIn(node)).toEqual([entry("p", ["c"])]);
    node.manager.forget("p");
    expect(node.manager.snapshot("p").devicePlugins[0]?.preferred).toBeUndefined();
  });

  test("logs a failure in Go's words, and is called again when the pod is retried", async () => {
    const node = await nodeWith();
    const answers = { GetPreferredAllocation: () => new Error("no idea") };
    const gpu = await joined(node, { resource: GPU, devices: healthy("a", "b"), options, answers });
    const pod = limited("p", ONE);
    expect(node.manager.askPreferred("p", decided(node, pod).unanswered)).toBe(true);
    await until(
      () => questions(gpu),
      (n) => n === 1,
    );
    const refusal = await until(
      () => {
        const { refusal, unanswered } = decided(node, pod);
        if (unanswered.length > 0) node.manager.askPreferred("p", unanswered);
        return refusal;
      },
      (r) => r !== null,
    );
    expect(refusal?.message).toContain(
      "device plugin GetPreferredAllocation rpc failed with err: rpc error: code = Unknown desc = no idea",
    );
    gpu.script.answers = { GetPreferredAllocation: () => choice("b") };
    const again = decided(node, pod);
    expect(again).toMatchObject({ refusal: null, unanswered: [{ resource: GPU }] });
    expect(node.manager.askPreferred("p", again.unanswered)).toBe(true);
  });

  test("is called once for equal questions at a time, and waiting pods go on when all answers are there", async () => {
    const node = await nodeWith();
    const gpu = await joined(node, { resource: GPU, devices: healthy("a", "b"), options });
    let count = 0;
    const asked = new PreferredAllocationRequests(node.manager.host, () => count++);
    const question = (size: number) => ({ resource: GPU, available: ["a", "b"], mustInclude: [], size });
    expect(asked.ask("p", [question(1), question(1), question(2)])).toBe(true);
    await until(
      () => count,
      (n) => n === 1,
    );
    expect(asked.ask("p", [question(1), question(2)])).toBe(false);
    expect(questions(gpu)).toBe(2);
    expect(count).toBe(1);
  });

  test("is called in at most three rounds for one try of a pod", async () => {
    const node = await nodeWith();
    await joined(node, { resource: GPU, devices: healthy("a", "b"), options });
    const question = (size: number) => ({ resource: GPU, available: ["a", "b"], mustInclude: [], size });
    for (const size of [1, 2, 3]) {
      expect(node.manager.askPreferred("p", [question(size)])).toBe(true);
      await until(
        () => node.manager.askPreferred("p", []),
        (isOpen) => !isOpen,
      );
    }
    expect(node.manager.askPreferred("p", [question(4)])).toBe(false);
    expect(node.manager.askPreferred("q", [question(4)])).toBe(true);
  });
});
