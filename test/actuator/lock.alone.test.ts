import { spawn, spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type Lock, takeLock } from "../../actuator/core/lock.ts";
import { WAITS } from "../e2e/pods/until.ts";
import { scratchFolder } from "../kit/scratch.ts";

let dir: string;
beforeEach(() => {
  dir = scratchFolder();
});

async function taken(root: string, boot = "boot"): Promise<Lock> {
  const lock = await takeLock(dir, root, boot);
  if (!lock.ok) throw new Error(lock.error);
  return lock.value;
}
async function refused(root: string): Promise<string> {
  const lock = await takeLock(dir, root, "boot");
  return lock.ok ? "" : lock.error;
}
/**
 * Field 22 of stat. The text up to the command's closing parenthesis is cut off first, since the command may contain a
 * space.
 */
const ownStart = (): string =>
  readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ")[19] ?? "";
const nameOf = (first: string): string =>
  join(dir, `nodewise-claim-${first.repeat(8)}-0000-4000-8000-000000000000.lock`);
function plant(first: string, state: "+" | "?", pid: number, start: string, boot = "boot"): string {
  writeFileSync(nameOf(first), `${state} ${pid} ${start} ${boot} /r\n`);
  return nameOf(first);
}

describe("the lock of a cgroup root", () => {
  test("is refused to a second process with the holder's id, and free after the release", async () => {
    const first = await taken("/r");
    expect(await refused("/r")).toMatch(`process ${process.pid} already writes here`);
    expect(readdirSync(dir).length, "who is refused leaves nothing").toBe(1);
    first.release();
    expect(readdirSync(dir)).toEqual([]);
    await taken("/r");
  });

  test.each([
    ["/r/kubepods", "inside"],
    ["/r/a/b", "inside"],
    ["/", "around"],
  ])("is refused for %s, which lies %s the held root", async (root, side) => {
    await taken("/r");
    expect(await refused(root)).toMatch(
      `process ${process.pid} already writes below cgroup root /r, and ${root} lies ${side} it`,
    );
  });

  test("does not block neighbouring roots, or roots with similar names", async () => {
    for (const root of ["/r/x", "/r-x", "/r/xy", "/s"]) await taken(root);
    expect(readdirSync(dir).length).toBe(4);
  });
});

describe("a stale claim does not hold a root:", () => {
  test("the claim of a dead process, which is removed", async () => {
    plant("0", "+", spawnSync("true").pid, "12345");
    await taken("/r");
    expect(readdirSync(dir).length).toBe(1);
  });
  test("the claim of a zombie process", async () => {
    // the process that replaces its shell by exec does not wait for the shell's child
    const parent = spawn("sh", ["-c", "sleep 60 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
    onTestFinished(() => void parent.kill("SIGKILL"));
    const pid = Number(await new Promise((resolve) => parent.stdout.once("data", resolve)));
    const statOf = (): string[] =>
      readFileSync(`/proc/${pid}/stat`, "utf8")
        .replace(/^.*\) /s, "")
        .split(" ");
    plant("0", "+", pid, statOf()[19] ?? "");
    expect(await refused("/r")).toMatch(`process ${pid} already writes here`);
    // before the exec the shell itself would wait for its child
    const parentIs = (): string => readFileSync(`/proc/${parent.pid}/comm`, "utf8").trim();
    await vi.waitFor(() => expect(parentIs()).toBe("sleep"), WAITS);
    process.kill(pid, "SIGKILL");
    await vi.waitFor(() => expect(statOf()[0]).toBe("Z"), WAITS);
    await taken("/r");
  });
  test("a claim whose process id another process has by now", async () => {
    plant("0", "+", process.pid, "1");
    await taken("/r");
  });
  test("a claim of another boot, even if its id runs now", async () => {
    const held = await taken("/r", "boot-1");
    await taken("/r", "boot-2");
    held.release();
    expect(readdirSync(dir).length, "an old holder takes away its own claim only").toBe(1);
  });
  test("a half written claim, which stays, and whose owner then finds the new holder", async () => {
    writeFileSync(nameOf("0"), "");
    await taken("/r");
    expect(readdirSync(dir).length).toBe(2);
    plant("0", "?", process.pid, ownStart());
    expect(await refused("/r")).toMatch("already writes");
  });
});

describe("of two processes that claim a root at the same moment", () => {
  test("the one with the greater name yields", async () => {
    plant("0", "?", process.pid, ownStart());
    expect(await refused("/r")).toMatch("already writes");
  });
  test("the one with the lesser name waits until the other has yielded", async () => {
    const other = plant("f", "?", process.pid, ownStart());
    const taking = taken("/r");
    rmSync(other);
    await taking;
  });
  test("the one with the lesser name yields when the other already held the root", async () => {
    plant("f", "?", process.pid, ownStart());
    const taking = refused("/r");
    plant("f", "+", process.pid, ownStart());
    expect(await taking).toMatch("already writes");
  });
});

const TAKER = `
const { takeLock } = await import(process.argv[1]);
const lock = await takeLock(process.argv[2], process.argv[3], "boot");
process.stdout.write(lock.ok ? "held\\n" : "refused\\n");
process.stdin.resume();
`;

test("of several processes that replace a dead holder on nested roots exactly one gets the lock", async () => {
  plant("0", "+", spawnSync("true").pid, "12345");
  const module = fileURLToPath(new URL("../../actuator/core/lock.ts", import.meta.url));
  const takers = ["/r", "/r/a", "/r", "/r/a"].map((root) =>
    spawn(process.execPath, ["--input-type=module", "-e", TAKER, module, dir, root], { stdio: "pipe" }),
  );
  const messages = await Promise.all(
    takers.map(
      (taker) =>
        new Promise<string>((resolve) => {
          taker.stdout.once("data", (text: Buffer) => resolve(text.toString().trim()));
          taker.once("close", (code) => resolve(`ended with ${code}`));
        }),
    ),
  );
  for (const taker of takers) taker.stdin.end();
  expect(messages.toSorted()).toEqual(["held", "refused", "refused", "refused"]);
});

test("a holder that was killed a moment ago does not block the lock", async () => {
  const module = fileURLToPath(new URL("../../actuator/core/lock.ts", import.meta.url));
  for (let round = 0; round < 5; round++) {
    const holder = spawn(process.execPath, ["--input-type=module", "-e", TAKER, module, dir, "/r"], { stdio: "pipe" });
    await new Promise((resolve) => holder.stdout.once("data", resolve));
    holder.kill("SIGKILL");
    (await taken("/r")).release();
  }
});
