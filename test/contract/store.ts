import { afterAll, beforeAll, describe } from "vitest";
import type { Store } from "../../db/store.ts";
import { damage } from "./store-damage.ts";
import { exportAndImport, exportedTokens, importFaults } from "./store-export-import.ts";
import { fleet, fleetNotes, fleetOutcomes } from "./store-fleet.ts";
import { largeBodies, resultsFactsTokens } from "./store-keeping.ts";
import { lists } from "./store-lists.ts";
import { decisionLog } from "./store-log.ts";
import { outcomeFilters, outcomeRetention, outcomes, snapshotsBefore } from "./store-outcomes.ts";
import { dearestRemovals, removalRetention, removalSummaries } from "./store-removal-costs.ts";
import { manyRemovals, removalLists } from "./store-removal-lists.ts";
import { removals, returns } from "./store-removals.ts";
import { retention } from "./store-retention.ts";
import type { StoreSubject } from "./store-rows.ts";
import { series, seriesInLists, seriesRetention, seriesUnderKeys, turns } from "./store-series.ts";
import { goneNodes, leapingClocks, sweepsInParts } from "./store-sweeps.ts";
import { piecedBodies, repeatedRanges, sharedTexts } from "./store-texts.ts";
import { idempotencyKeys, nodesAndSnapshots, recording } from "./store-writes.ts";

/** The behaviour of every store. `open` returns an empty one, which the tests share; each test uses its own names. */
export function storeContract(name: string, open: () => Promise<StoreSubject>): void {
  describe(name, { timeout: 60_000 }, () => {
    let subject: StoreSubject;
    beforeAll(async () => {
      subject = await open();
    }, 60_000);
    afterAll(async () => {
      await subject?.dispose();
    }, 60_000);
    const of = (): Store => subject.store;
    describe("recording", () => recording(of));
    describe("repeated decisions", () => {
      series(of);
      seriesUnderKeys(of);
      seriesInLists(of);
      seriesRetention(of);
    });
    describe("turns", () => turns(of));
    describe("idempotency keys", () => idempotencyKeys(of));
    describe("nodes and snapshots", () => nodesAndSnapshots(of));
    describe("lists and streams", () => lists(of));
    describe("the fleet", () => {
      fleet(of);
      fleetNotes(of);
      fleetOutcomes(of);
    });
    describe("results, facts and tokens", () => resultsFactsTokens(of));
    describe("large bodies", () => largeBodies(of));
    describe("shared texts", () => sharedTexts(() => subject));
    describe("bodies in pieces", () => piecedBodies(() => subject));
    describe("repeated ranges", () => repeatedRanges(() => subject));
    describe("outcomes", () => {
      outcomes(of);
      outcomeFilters(of);
      snapshotsBefore(of);
      outcomeRetention(of);
    });
    describe("removals", () => {
      removals(of);
      returns(of);
    });
    describe("lists of removals", () => removalLists(of));
    describe("many removals", () => manyRemovals(of));
    describe("removal summaries", () => {
      removalSummaries(of);
      dearestRemovals(of);
    });
    describe("retention", () => retention(of));
    describe("retention of removals", () => removalRetention(of));
    describe("retention sweeps", () => {
      goneNodes(() => subject);
      leapingClocks(() => subject);
      sweepsInParts(() => subject);
    });
    describe("moving to another store", () => {
      const another = (): Store => subject.another;
      exportedTokens(of, another);
      exportAndImport(of, another);
      importFaults(of, another);
    });
    describe("the decision log", () => decisionLog(() => subject));
    describe("damage", () => damage(() => subject));
  });
}
