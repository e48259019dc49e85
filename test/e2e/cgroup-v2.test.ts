import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, type TestContext, test } from "vitest";
import { skip } from "../kit/programs.ts";
import { prepareGuest } from "./vm/build.ts";
import { bundle } from "./vm/bundle.ts";
import { type GuestResult, runInGuest } from "./vm/run.ts";

/** Generous: the guest is emulated, and other processes may use the processors. An idle machine needs a tenth of it. */
const BUILD_TIMEOUT_MS = 240_000;
const GUEST_TIMEOUT_MS = 1_200_000;
const TEST_TIMEOUT_MS = GUEST_TIMEOUT_MS + 10_000;

async function runJob(context: TestContext, file: string): Promise<GuestResult> {
  const guest = await prepareGuest();
  if (!guest.ok) skip(context, guest.error.message);
  if (!existsSync(join(import.meta.dirname, file))) skip(context, `there is no ${file} yet`);
  const files = { "/job/main.mjs": await bundle(file) };
  return runInGuest({ files, command: ["node", "/job/main.mjs"], timeoutMs: GUEST_TIMEOUT_MS });
}

/** A job ends with the line "N checks ran"; a job that ran no checks has proved nothing. */
function expectAllChecksPassed({ exitCode, stdout }: GuestResult): void {
  expect(exitCode, stdout).toBe(0);
  const ran = /^(\d+) checks ran$/m.exec(stdout)?.[1];
  expect(Number(ran), stdout).toBeGreaterThan(0);
}

describe("cgroup v2 in a virtual machine", () => {
  beforeAll(async () => {
    await prepareGuest();
  }, BUILD_TIMEOUT_MS);

  test("the guest has a cgroup v2 hierarchy that behaves as documented", {
    timeout: TEST_TIMEOUT_MS,
  }, async (context) => {
    expectAllChecksPassed(await runJob(context, "vm/hierarchy-job.ts"));
  });

  test("the actuator's cgroup files keep their contract on cgroup v2", {
    timeout: TEST_TIMEOUT_MS,
  }, async (context) => {
    expectAllChecksPassed(await runJob(context, "cgroup-v2-job.ts"));
  });

  test("a job's output and exit code are passed out of the guest unchanged", {
    timeout: TEST_TIMEOUT_MS,
  }, async (context) => {
    const guest = await prepareGuest();
    if (!guest.ok) skip(context, guest.error.message);
    // The output is as long as a failing job's report: powering off must not truncate it.
    const script = 'seq 1 5000; cat "$1"; printf "%s|" "$@" >&2; exit 7';
    const command = ["sh", "-c", script, "sh", "/data/a file", "", "$HOME 'x'"];
    const files = { "/data/a file": "a=ä\n\n" };
    const { exitCode, stdout } = await runInGuest({ files, command, timeoutMs: GUEST_TIMEOUT_MS });
    const numbers = Array.from({ length: 5000 }, (_, index) => `${index + 1}\n`).join("");
    expect(stdout).toBe(`${numbers}a=ä\n\n/data/a file||$HOME 'x'|`);
    expect(exitCode).toBe(7);
  });

  test("a job that exceeds its timeout is ended, and the error shows its last lines", {
    timeout: TEST_TIMEOUT_MS,
  }, async (context) => {
    const guest = await prepareGuest();
    if (!guest.ok) skip(context, guest.error.message);
    const running = runInGuest({ files: {}, command: ["sleep", "600"], timeoutMs: 5_000 });
    const error: Error = await running.then(
      ({ exitCode }) => expect.unreachable(`it ended with exit code ${exitCode}`),
      (reason: Error) => reason,
    );
    expect(error.message).toMatch(/with `sleep 600` was ended after 5000 ms; its last lines:\n.*SeaBIOS/s);
    const pid = Number(/process (\d+)/.exec(error.message)?.[1]);
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  });
});
