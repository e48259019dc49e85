import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { skip } from "../kit/programs.ts";
import { containerPrograms } from "./containerd/programs.ts";
import { prepareGuest } from "./vm/build.ts";
import { bundle } from "./vm/bundle.ts";
import { runInGuest } from "./vm/run.ts";

/** Generous: the guest is emulated, and other processes may use the processors. An idle machine needs a fifth of it. */
const BUILD_TIMEOUT_MS = 240_000;
const GUEST_TIMEOUT_MS = 1_200_000;
const PROTO = join(import.meta.dirname, "../../actuator/containerd");

beforeAll(async () => {
  await prepareGuest();
}, BUILD_TIMEOUT_MS);

test("pods run on cgroup v2, in a virtual machine with containerd", {
  timeout: GUEST_TIMEOUT_MS + 10_000,
}, async (context) => {
  const guest = await prepareGuest();
  if (!guest.ok) skip(context, guest.error.message);
  const programs = containerPrograms();
  if ("missing" in programs) skip(context, programs.missing);
  const files: Record<string, Uint8Array> = { "/job/main.mjs": await bundle("pods-v2-job.ts") };
  for (const name of ["runtime.proto", "content.proto"]) files[`/job/${name}`] = readFileSync(join(PROTO, name));
  const { exitCode, stdout } = await runInGuest({
    files,
    // The guest emulates all processors in one thread, and Go programs look for work on each processor: with
    // GOMAXPROCS=1 they cost less. Emulating compiled code costs more than interpreting: --jitless halves the time.
    command: ["env", "GOMAXPROCS=1", "node", "--jitless", "/job/main.mjs"],
    timeoutMs: GUEST_TIMEOUT_MS,
    memoryMb: 1024,
    // two cores: when a pod has exclusive use of one, the other pods use the other
    cpus: 4,
    isHyperThreaded: true,
  });
  expect(exitCode, stdout).toBe(0);
  expect(stdout).toMatch(/^12 checks ran$/m);
});
