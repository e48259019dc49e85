import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { goBuilt } from "../../kit/go-built.ts";

/** The plugin built with one version of grpc-go. */
export interface GoBuild {
  readonly name: string;
  readonly grpc: string;
  readonly modfile: "go.mod" | "old-grpc.mod";
}
export const GO_BUILDS: readonly GoBuild[] = [
  { name: "grpc-go of today", grpc: "1.75.0", modfile: "go.mod" },
  { name: "grpc-go 1.38, which sends a path as :authority", grpc: "1.38.0", modfile: "old-grpc.mod" },
];
export const goPlugin = ({ modfile }: GoBuild) => goBuilt(join(import.meta.dirname, "go-plugin"), modfile);

/** A running plugin written in Go, and the lines that it prints. */
export interface GoPlugin {
  readonly lines: readonly string[];
  list(...devices: readonly string[]): void;
  kill(): Promise<void>;
}

export function startGoPlugin(program: string, dir: string, resource: string, devices: readonly string[]): GoPlugin {
  const child: ChildProcessWithoutNullStreams = spawn(program, ["-dir", dir, "-resource", resource, ...devices]);
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  child.stderr.resume();
  return {
    lines,
    list: (...next) => child.stdin.write(`list ${next.join(" ")}\n`),
    kill: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}
