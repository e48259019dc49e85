import { closeSync, mkdirSync, openSync, type Stats, statSync } from "node:fs";
import { err, ok, type Result } from "../../api/model/result.ts";
import type { HostPathType } from "../lifecycle/pod.ts";
import { codeOf, goErrorText } from "./go-error.ts";

interface Expected {
  readonly is: (stats: Stats) => boolean;
  readonly noun: string;
}
const DIRECTORY: Expected = { is: (s) => s.isDirectory(), noun: "directory" };
const FILE: Expected = { is: (s) => s.isFile(), noun: "file" };
const EXPECTED: Readonly<Record<Exclude<HostPathType, "">, Expected>> = {
  DirectoryOrCreate: DIRECTORY,
  Directory: DIRECTORY,
  FileOrCreate: FILE,
  File: FILE,
  Socket: { is: (s) => s.isSocket(), noun: "socket file" },
  CharDevice: { is: (s) => s.isCharacterDevice(), noun: "character device" },
  BlockDevice: { is: (s) => s.isBlockDevice(), noun: "block device" },
};

/**
 * Checks that a path of the machine is what a pod takes it for, links followed, and makes it where the type says so
 * (directories 0755 with those above, files 0644 without). Error: the kubelet's words. kubelet 1.36: hostPathMounter.SetUp.
 */
export function checkHostPath(path: string, type: HostPathType): Result<null, string> {
  if (path.split("/").includes("..")) return err(`invalid HostPath \`${path}\`: must not contain '..'`);
  if (type === "") return ok(null);
  const found = statsOf(path);
  if (found === null && type === "DirectoryOrCreate")
    return made(() => mkdirSync(path, { recursive: true, mode: 0o755 }));
  if (found === null && type === "FileOrCreate") return made(() => closeSync(openSync(path, "a", 0o644)));
  const { is, noun } = EXPECTED[type];
  return found !== null && is(found) ? ok(null) : err(`hostPath type check failed: ${path} is not a ${noun}`);
}

/** Null: not there, or nobody may know. */
function statsOf(path: string): Stats | null {
  try {
    return statSync(path);
  } catch (error) {
    codeOf(error);
    return null;
  }
}

/** What is there by now is as good: the kubelet does not look at it again either. */
function made(make: () => unknown): Result<null, string> {
  try {
    make();
  } catch (error) {
    if (codeOf(error) !== "EEXIST") return err(goErrorText(error));
  }
  return ok(null);
}
