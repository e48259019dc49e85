import { beforeAll, expect, test } from "vitest";
import { skip } from "../kit/programs.ts";
import { containerPrograms } from "./containerd/programs.ts";
import { prepareGuest } from "./vm/build.ts";
import { runInGuest } from "./vm/run.ts";
import { systemdFiles } from "./vm/systemd-files.ts";

/** Generous: the guest is emulated, and other processes may use the processors. An idle machine needs a sixth of it. */
const BUILD_TIMEOUT_MS = 240_000;
const GUEST_TIMEOUT_MS = 1_200_000;

beforeAll(async () => {
  await prepareGuest("systemd");
}, BUILD_TIMEOUT_MS);

test("in a virtual machine systemd runs the daemon by its unit file, and pods run", {
  timeout: GUEST_TIMEOUT_MS + 10_000,
}, async (context) => {
  const guest = await prepareGuest("systemd");
  if (!guest.ok) skip(context, guest.error.message);
  const programs = containerPrograms();
  if ("missing" in programs) skip(context, programs.missing);
  const files = await systemdFiles();
  if (typeof files === "string") skip(context, files);
  const { exitCode, stdout } = await runInGuest({
    guest: "systemd",
    files,
    command: ["node", "--jitless", "/job/main.mjs"],
    timeoutMs: GUEST_TIMEOUT_MS,
    memoryMb: 1024,
    cpus: 1,
  });
  expect(exitCode, stdout).toBe(0);
  expect(stdout).toMatch(/^11 checks ran$/m);
});
