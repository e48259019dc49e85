import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { socketIdentity } from "../../../actuator/core/addresses.ts";
import { listenRebinding, type RebindingListener } from "../../../actuator/grpc/listener.ts";
import { scratchFolder } from "../../kit/scratch.ts";

const PATIENT = { timeout: 15_000 };

async function rebinding(more: Partial<RebindingListener> = {}) {
  const directory = scratchFolder();
  const path = join(directory, "kubelet.sock");
  const faults: string[] = [];
  const opened = await listenRebinding({
    path,
    maxConnections: 4,
    onConnection: (socket) => socket.end("here"),
    onFault: (message) => faults.push(message),
    firstDelayMs: 50,
    ...more,
  });
  if (!opened.ok) throw new Error(opened.error);
  onTestFinished(opened.value.close);
  return { directory, path, faults, close: opened.value.close, identity: socketIdentity(path) };
}
/** The text that a client receives when it connects. */
const heard = (path: string): Promise<string> =>
  new Promise((done) => {
    let text = "";
    const socket = connect(path).setEncoding("utf8");
    socket.on("data", (chunk) => (text += chunk));
    socket.on("error", ({ message }) => done(message)).on("end", () => done(text));
  });
async function otherAt(path: string): Promise<Server> {
  const other = createServer((socket) => socket.on("error", () => undefined).end("another"));
  await new Promise<void>((done) => other.listen(path, done));
  onTestFinished(() => void other.close());
  return other;
}

describe("a socket that was removed while it is served", () => {
  test("is bound again with a report, each time", async () => {
    const { path, faults, identity } = await rebinding();
    for (const times of [1, 2]) {
      rmSync(path);
      await expect.poll(() => faults.length, PATIENT).toBe(times);
      expect(await heard(path)).toBe("here");
    }
    expect(faults[0]).toBe(`${path} was taken away while it was served: it is bound again`);
    expect(socketIdentity(path)).not.toBe(identity);
  });
  test("together with its directory is bound again", async () => {
    const { directory, path, faults } = await rebinding({ checkMs: 600_000 });
    for (const times of [1, 2]) {
      rmSync(directory, { recursive: true });
      await expect.poll(() => faults.length, PATIENT).toBe(times);
      expect(await heard(path)).toBe("here");
    }
  });
  test("and put back in time is left as it is", async () => {
    const { path, faults, identity } = await rebinding({ firstDelayMs: 3_000 });
    renameSync(path, `${path}.away`);
    await sleep(100);
    renameSync(`${path}.away`, path);
    // longer than the delay before the socket would be bound again
    await sleep(3_500);
    expect(socketIdentity(path)).toBe(identity);
    expect(faults).toEqual([]);
    expect(await heard(path)).toBe("here");
  });
  test("and replaced by another process's is left to it, reported, and bound again after its removal", async () => {
    const { path, faults } = await rebinding();
    rmSync(path);
    const other = await otherAt(path);
    await expect.poll(() => faults.length, PATIENT).toBe(1);
    expect(faults[0]).toMatch(
      /^the socket was taken away, and cannot be bound again: .* another process answers there/,
    );
    await sleep(500);
    expect(await heard(path)).toBe("another");
    expect(faults).toHaveLength(1);
    await new Promise((done) => other.close(done));
    await expect.poll(() => faults.length, PATIENT).toBe(2);
    expect(await heard(path)).toBe("here");
  });
  test("and replaced by another kind of file is not bound again", async () => {
    const { path, faults } = await rebinding();
    rmSync(path);
    writeFileSync(path, "");
    await expect.poll(() => faults.length, PATIENT).toBe(1);
    expect(faults[0]).toContain("is no socket and is left alone");
  });
  test("again and again is bound at longer and longer intervals", async () => {
    const times = [performance.now()];
    const { path } = await rebinding({ firstDelayMs: 100, onFault: () => times.push(performance.now()) });
    for (const until = performance.now() + 15_000; times.length < 4 && performance.now() < until; await sleep(5))
      rmSync(path, { force: true });
    const gaps = times.slice(1).map((time, i) => time - (times[i] as number));
    expect(gaps).toHaveLength(3);
    // a timer may fire a millisecond early
    for (const [i, gap] of gaps.entries()) expect(gap).toBeGreaterThan(100 * 2 ** i - 2);
  });
  test("is not bound again after close", async () => {
    const { path, close, faults } = await rebinding({ firstDelayMs: 1_000 });
    rmSync(path);
    await sleep(150);
    await close();
    await sleep(1_200);
    expect(existsSync(path)).toBe(false);
    expect(faults).toEqual([]);
  });
});

test("a removed socket is found by polling where the directory cannot be watched", async () => {
  const { path, faults, directory } = await rebinding({ checkMs: 200 });
  // the watch stays on the directory that was moved away
  renameSync(directory, `${directory}.away`);
  onTestFinished(() => rmSync(`${directory}.away`, { recursive: true, force: true }));
  await expect.poll(() => faults.length, PATIENT).toBe(1);
  expect(await heard(path)).toBe("here");
});
