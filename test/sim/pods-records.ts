import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type PodRecord, recordOfStored, type StoredRecord } from "../../actuator/lifecycle/record.ts";
import type { PodsNode } from "./pods-node.ts";

const SUFFIX = ".pod.json";

/** The record on disk; null: there is none. */
export function recordOf(node: PodsNode, uid: string): PodRecord | null {
  const file = join(node.stateDir, "pods", `${uid}${SUFFIX}`);
  if (!existsSync(file)) return null;
  return recordOfStored((JSON.parse(readFileSync(file, "utf8")) as { record: StoredRecord }).record);
}

/** The records by uid that the daemon knows; while no daemon runs, those on disk. */
export function recordsOf(node: PodsNode): ReadonlyMap<string, PodRecord> {
  if (node.daemon !== null) return node.daemon.manager.set.records.known;
  const directory = join(node.stateDir, "pods");
  const files = existsSync(directory) ? readdirSync(directory) : [];
  const uids = files.filter((file) => file.endsWith(SUFFIX)).map((file) => file.slice(0, -SUFFIX.length));
  return new Map(uids.map((uid) => [uid, recordOf(node, uid) as PodRecord]));
}
