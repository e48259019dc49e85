import { describe, expect, test } from "vitest";
import type { Exec, PodRuntime } from "../../../actuator/containerd/cri.ts";
import { execProbe } from "../../../actuator/probes/engine/attempt.ts";
import { err, ok } from "../../../api/base/result.ts";
import { TARGET } from "./servers.ts";

type ExecPort = PodRuntime["exec"];
const ended =
  (exitCode: number, { stdout = "", stderr = "" }: Partial<Exec> = {}): ExecPort =>
  async () =>
    ok({ exitCode, stdout, stderr });
const fault =
  (code: string, message: string): ExecPort =>
  async () =>
    err({ call: "ExecSync", code, message });
const LONG_MS = 20_000;
const probe = (exec: ExecPort, timeoutMs = LONG_MS) => execProbe(["sh", "-c", "x"], TARGET, timeoutMs, exec);

describe("an exec probe", () => {
  test("succeeds or fails by the exit code, with all output", async () => {
    expect(await probe(ended(0, { stdout: "ok\n" }))).toEqual({ result: "success", output: "ok\n" });
    // as in ../exec-exit-3-output of a real kubelet: the message of its event ends with a line break
    expect(await probe(ended(3, { stdout: "out\n", stderr: "err\n" }))).toEqual({
      result: "failure",
      output: "out\nerr\n",
    });
  });
  test("keeps 10 KiB of output, cut inside a character as Go does", async () => {
    const long = await probe(ended(1, { stdout: "x".repeat(10_239), stderr: "üü" }));
    expect(long).toEqual({ result: "failure", output: `${"x".repeat(10_239)}\ufffd` });
    const exact = "x".repeat(10_240);
    expect(await probe(ended(1, { stdout: exact }))).toEqual({ result: "failure", output: exact });
  });
  test("fails when it takes too long, whether the runtime or the daemon notices", async () => {
    const output = 'command timed out: "sh -c x" timed out after 1s';
    expect(await probe(fault("DEADLINE_EXCEEDED", "context deadline exceeded"), 1000)).toEqual({
      result: "failure",
      output,
    });
    expect(await probe(() => new Promise(() => {}), 1000)).toEqual({ result: "failure", output });
  });
  test("has an error, and no result, when the runtime cannot run it", async () => {
    expect(await probe(fault("UNKNOWN", "no such file"))).toEqual({
      error: "rpc error: code = Unknown desc = no such file",
    });
    expect(await probe(fault("NOT_FOUND", "gone"))).toEqual({ error: "rpc error: code = NotFound desc = gone" });
    const large =
      "Received message larger than max (16777300 vs 16777216); the answer is larger than this client takes";
    expect(await probe(fault("RESOURCE_EXHAUSTED", large))).toEqual({
      error:
        "rpc error: code = ResourceExhausted desc = grpc: received message larger than max (16777300 vs. 16777216)",
    });
    expect(await probe(() => Promise.reject(new Error("closed")))).toEqual({ error: "closed" });
  });
  test("expands only the variables of the manifest, and gives the runtime a timeout in whole seconds", async () => {
    const asked: unknown[] = [];
    const exec: ExecPort = async (...all) => {
      asked.push(all);
      return ok({ exitCode: 0, stdout: "", stderr: "" });
    };
    const env = [
      { name: "A", value: "$(B)" },
      { name: "B", value: "b" },
      { name: "IP", fieldPath: "status.podIP" },
    ];
    const command = ["$(A) $(B)", "[$(IP)]", "$(NONE) $$(B)"];
    await execProbe(command, { ...TARGET, env }, 1500, exec);
    expect(asked).toEqual([["c1", ["$(B) b", "[]", "$(NONE) $(B)"], 2]]);
  });
});
