import type { Store } from "../../../db/store.ts";
import { ok } from "../../base/result.ts";
import { sha256 } from "../../server/digest.ts";
import { postedSnapshot } from "../../service/replay/parsed.ts";
import { LONG_RUN_LENGTH } from "../../service/replay/replay-one.ts";
import { MAX_REPLAYED } from "../../service/replay/replay-page.ts";
import { subjectOf, versionBefore } from "../../service/upgrade/asked.ts";
import { upgradePages } from "../../service/upgrade/upgrade-page.ts";
import { upgradeReport } from "../../service/upgrade/upgrade-report.ts";
import { checkNode, storeFault } from "../inputs/open-history.ts";
import { EXIT, fault } from "../terminal.ts";
import { isOfConfiguration, MAX_NODES, type UpgradeRequest, type UpgradeSource } from "./upgrade-source.ts";

const UNREADABLE = "its latest snapshot cannot be read by this version";

/** Reads reports from a local history. */
export function sourceOfStore(store: Store, { to, from, filter }: UpgradeRequest): UpgradeSource {
  // one for all pages, so that its cache is reused
  const pages = upgradePages(store, to.profile, LONG_RUN_LENGTH);
  return {
    nodes: async () => {
      const rows = await store.listNodes({ limit: MAX_NODES });
      return rows.ok ? ok(rows.value.map(({ name }) => name)) : storeFault(rows);
    },
    reportOf: async (node, configuration, beside) => {
      const known = await checkNode(store, node);
      if (!known.ok) return known;
      const latest = await store.latestSnapshot(node);
      if (!latest.ok) return storeFault(latest);
      if (latest.value === null) return ok("no snapshot of it is stored");
      const posted = postedSnapshot(latest.value);
      if (!posted.ok) return storeFault(posted);
      const subject = subjectOf(posted.value, configuration);
      if (!subject.ok) {
        const other = subject.error.find(({ path }) => isOfConfiguration(path));
        return ok(other === undefined ? UNREADABLE : `${other.path}: ${other.message}`);
      }
      const before = versionBefore(from, subject.value.snapshot);
      if (!before.ok) return ok(`--from ${before.error.message}`);
      return ok(upgradeReport({ ...subject.value, ...beside, to, from: before.value }));
    },
    page: async (node, pageToken) => {
      const request = {
        filter: { ...filter, ...(node === undefined ? {} : { node }) },
        limit: MAX_REPLAYED,
        ...(pageToken === undefined ? {} : { pageToken }),
      };
      const page = await pages({ nowMs: Date.now(), sha256 }, request);
      if (page.ok) return page;
      return page.error.code === "bad_page_token"
        ? fault(EXIT.badInput, `--page-token: ${page.error.message}`)
        : storeFault(page);
    },
  };
}
