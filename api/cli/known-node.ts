import type { AllocatableDecision, CgroupsDecision, Kind, PlaceReasons } from "../model/decision.ts";
import { ok, type Result } from "../model/result.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { RunningApi } from "../server.ts";
import { answerText } from "../text/tables/index.ts";
import { EXIT, type Fault, fault } from "./exit.ts";
import { readSnapshot } from "./inputs/snapshot.ts";
import type { Terminal } from "./terminal.ts";

interface Answer<D> {
  readonly decision: D;
  readonly reasons: readonly PlaceReasons[];
  readonly needs: readonly string[];
}

/** A node's snapshot, and what the runtime told of it where that lies in files of its own. */
export interface KnownNodeFiles {
  readonly snapshot?: string;
  readonly images?: string;
  readonly containers?: string;
  readonly sandboxes?: string;
  readonly imagefs?: string;
}

/** Asks the API about a node whose snapshot is in a file, so that the dashboard has it, and shows what it answers. */
export async function showKnownNode(
  files: KnownNodeFiles,
  api: RunningApi,
  terminal: Terminal,
): Promise<Result<void, Fault>> {
  const { snapshot: file, images, containers, sandboxes, imagefs } = files;
  const runtime = Object.entries({ images, containers, sandboxes, imagefs }).filter(([, path]) => path !== undefined);
  const read = await readSnapshot({
    ...(file === undefined ? {} : { snapshot: file }),
    ...Object.fromEntries(runtime),
  });
  if (!read.ok) return read;
  const snapshot = read.value;
  const node = snapshot.node?.metadata.name ?? "(no node given)";
  const shown = { node, explain: "off" } as const;
  const allocatable = await ask<AllocatableDecision>("allocatable", snapshot, api);
  if (!allocatable.ok) return allocatable;
  const cgroups = await ask<CgroupsDecision>("cgroups", snapshot, api);
  if (!cgroups.ok) return cgroups;
  terminal.write(`${terminal.paint("bold", `Node ${node}`)}, as ${file} has it\n\n`);
  terminal.write(`${answerText({ ...shown, kind: "allocatable", decided: plain(allocatable.value) }, terminal)}\n`);
  terminal.write(`${answerText({ ...shown, kind: "cgroups", decided: plain(cgroups.value) }, terminal)}\n`);
  // for the dashboard alone: what the snapshot does not suffice for is said there
  for (const kind of ALSO) await ask(kind, snapshot, api);
  return ok(undefined);
}
/** The dashboard has the reasons. */
const plain = <D>(answer: Answer<D>): Answer<D> => ({ ...answer, reasons: [] });
const ALSO = ["cpus", "memory", "devices", "eviction", "image-gc", "container-gc"] as const satisfies readonly Kind[];

async function ask<D>(kind: Kind, snapshot: Snapshot, api: RunningApi): Promise<Result<Answer<D>, Fault>> {
  const reply = await api.fetch(
    new Request(`${api.url}/v1/decisions/${kind}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ snapshot, explain: "reasons" }),
    }),
  );
  const body = (await reply.json()) as Answer<D> & { detail?: string };
  return reply.ok ? ok(body) : fault(EXIT.failed, `${kind}: ${body.detail ?? `the API answered ${reply.status}`}`);
}
