import { storeAt } from "../../../db/open/node.ts";
import { NODE_GRACE_MS } from "../../../db/store.ts";
import { DAY_MS } from "../../base/duration.ts";
import { ok } from "../../base/result.ts";
import { maxLeapMs, rowsOf } from "../../retention.ts";
import { rfc3339 } from "../../service/timestamp.ts";
import { humanBytes } from "../../text/size.ts";
import { printable } from "../../text/style.ts";
import { storeSetting } from "../api-options.ts";
import type { Cli } from "../cli.ts";
import { storeFault, withHistory } from "../inputs/open-history.ts";
import { EXIT, fault, type Outcome } from "../terminal.ts";

export interface PruneFlags {
  readonly dataDir?: string;
  readonly keepDays: number;
  readonly keepDecisions?: number;
  readonly confirm?: boolean;
}

/**
 * `nodewise history prune`: what the API does every ten minutes, done now with the given limits only; `--confirm` says that the
 * clock is right.
 */
export async function prune(given: PruneFlags, cli: Cli): Promise<Outcome> {
  const { keepDays, keepDecisions, confirm } = given;
  return withHistory(storeSetting(given, cli), false, async (store) => {
    const nowMs = Date.now();
    const maxAgeMs = keepDays * DAY_MS;
    const rules = {
      maxAgeMs,
      ...(keepDecisions === undefined ? {} : { maxRowsPerNode: keepDecisions }),
      ...(confirm === true ? {} : { maxLeapMs: maxLeapMs(maxAgeMs) }),
    };
    const pruned = await store.prune({ nowMs, ...rules });
    if (!pruned.ok) return storeFault(pruned);
    const { held, nodes, freedBytes } = pruned.value;
    const rows = Object.entries(rowsOf(pruned.value)).map(([table, count]) => `${table} ${count}`);
    cli.terminal.write(`removed: ${rows.join(", ")}; freed ${humanBytes(freedBytes)}\n`);
    const silentDays = Math.max(maxAgeMs, NODE_GRACE_MS) / DAY_MS;
    for (const node of nodes) cli.terminal.write(`removed, no report for ${silentDays} days: ${printable(node)}\n`);
    if (held === null) return ok(EXIT.ok);
    cli.terminal.warn(
      `nodewise: nothing removed by age: this clock is at ${rfc3339(nowMs)}, and is compared with ${rfc3339(held.sinceMs)}; ` +
        `${held.decisions} of ${held.of} decisions would be removed; correct the clock, or give --confirm if it is right`,
    );
    return ok(EXIT.negative);
  });
}

/** `nodewise history compact`: rewrites the store without its free space. */
export async function compact(given: { readonly dataDir?: string }, cli: Cli): Promise<Outcome> {
  const setting = storeSetting(given, cli);
  if (!setting.ok) return setting;
  return withHistory(setting, false, async (store) => {
    await store.close();
    const location = storeAt(setting.value);
    const compacted = await location.compact();
    if (!compacted.ok) return fault(EXIT.failed, compacted.error.message);
    const { before, after } = compacted.value;
    cli.terminal.write(`${location.label}: ${humanBytes(before)}, now ${humanBytes(after)}\n`);
    return ok(EXIT.ok);
  });
}
