import { afterAll, beforeAll, describe, expect } from "vitest";
import { ROUTES } from "../../api/http/index.ts";
import { openApi } from "../../api/http/openapi/contract.ts";
import { OPERATIONS } from "../../api/http/openapi/operations.ts";
import { advice } from "./advice.ts";
import { asks, badAsks } from "./api-asks.ts";
import { nodeTokens, otherNodesIds, tokens } from "./api-auth.ts";
import { badInput, badRequests } from "./api-bad-input.ts";
import { batches, batchProblems } from "./api-batch.ts";
import { decisions, reportOf, snapshotsAndKeys } from "./api-decisions.ts";
import { exportAndImport } from "./api-export-import.ts";
import { fleetAnswers } from "./api-fleet.ts";
import { containerPasses, imagePasses, imagesRemoved, imagesToldAnew, reclaimPasses } from "./api-gc.ts";
import { collectionsUnlisted } from "./api-gc-failed.ts";
import { runtimeKept } from "./api-gc-history.ts";
import { collectionsAskedBadly } from "./api-gc-input.ts";
import { fleets, history, misspelt, replays, results } from "./api-history.ts";
import { kubeletsInFleet, outcomeLists, unreadKubelets } from "./api-kubelets.ts";
import { agreements, badOutcomes, conditions, evictions, outcomes, preemptions } from "./api-outcomes.ts";
import { pages } from "./api-pages.ts";
import { probeRuns, probesKeptAndRefused } from "./api-probes.ts";
import { remembering } from "./api-remembering.ts";
import { badRemovals, decidedRemovals, removals } from "./api-removals.ts";
import type { ApiSubject } from "./api-subject.ts";
import { cutOffBodies, pagesAndEncodings, surface } from "./api-surface.ts";
import { turns } from "./api-turns.ts";
import { unrecorded } from "./api-unrecorded.ts";
import { versions, versionsAgain } from "./api-versions.ts";
import { badLints, lints } from "./lint.ts";
import { badHistoryReplays, historyReplays, replaysOfANodesToken } from "./replay-history.ts";
import { badUpgrades, upgrades } from "./upgrade.ts";
import { badWhys, whys } from "./why.ts";
import { whyNot, whyOutcomes } from "./why-outcomes.ts";

/** Answers that are computed from decisions, and recorded nowhere. */
function questions(of: () => ApiSubject): void {
  describe("export and import of a history", () => exportAndImport(of));
  describe("advice on reservations", () => advice(of));
  describe("upgrade reports", () => {
    upgrades(of);
    badUpgrades(of);
  });
  describe("explanations of pods", () => {
    whys(of);
    whyOutcomes(of);
    whyNot(of);
    badWhys(of);
  });
}

/** The behaviour of the API on every platform. `open` returns an API with an empty history, which the tests share. */
export function apiContract(name: string, open: () => Promise<ApiSubject>): void {
  describe(name, { timeout: 60_000 }, () => {
    let subject: ApiSubject;
    beforeAll(async () => {
      subject = await documented(await open());
    }, 60_000);
    afterAll(async () => {
      await subject?.dispose();
    }, 60_000);
    const of = (): ApiSubject => subject;
    // a lint without a node decides every recorded decision again: it runs here while there are few, and on all of them
    // in "kubelet versions"
    describe("lint of a configuration", () => [lints, badLints].forEach((part) => void part(of)));
    describe("decisions", () => decisions(of));
    describe("notes about the input of a decision", () => reportOf(of));
    describe("decisions about a pod", () => [asks, badAsks].forEach((part) => void part(of)));
    describe("decisions with remembered facts", () => remembering(of));
    describe("decisions with record=false", () => unrecorded(of));
    describe("garbage collection passes", () => {
      imagePasses(of);
      imagesRemoved(of);
      containerPasses(of);
      reclaimPasses(of);
      imagesToldAnew(of);
      runtimeKept(of);
      collectionsUnlisted(of);
    });
    describe("invalid garbage collection requests", () => collectionsAskedBadly(of));
    describe("dry runs of probes", () => {
      probeRuns(of);
      probesKeptAndRefused(of);
    });
    describe("stored snapshots and idempotency keys", () => snapshotsAndKeys(of));
    describe("bad input", () => badInput(of));
    describe("bad requests", () => badRequests(of));
    describe("history", () => [history, misspelt].forEach((part) => void part(of)));
    describe("fleets", () => {
      fleets(of);
      fleetAnswers(of);
    });
    describe("removals", () => {
      removals(of);
      badRemovals(of);
      decidedRemovals(of);
    });
    describe("results", () => results(of));
    describe("outcomes of kubelets", () => {
      outcomes(of);
      preemptions(of);
      evictions(of);
      conditions(of);
      agreements(of);
      badOutcomes(of);
    });
    describe("kubelet outcomes in the fleet and in lists", () => {
      kubeletsInFleet(of);
      unreadKubelets(of);
      outcomeLists(of);
    });
    describe("replays", () => replays(of));
    describe("kubelet versions", () => {
      versions(of);
      versionsAgain(of);
    });
    questions(of);
    describe("replays of a history", () => {
      historyReplays(of);
      badHistoryReplays(of);
      replaysOfANodesToken(of);
    });
    describe("batches", () => batches(of));
    describe("problems of batches", () => batchProblems(of));
    describe("tokens", () => tokens(of));
    describe("tokens of a node", () => {
      nodeTokens(of);
      otherNodesIds(of);
    });
    describe("turns of a node", () => turns(of));
    describe("health, metrics and headers", () => surface(of));
    describe("pages and encodings", () => {
      pagesAndEncodings(of);
      cutOffBodies(of);
    });
    describe("pages", () => pages(of));
  });
}

const PATTERNS = Object.keys(OPERATIONS).map((key) => {
  const [method = "", path = ""] = key.split(" ");
  return { method, path, pattern: new RegExp(`^${path.replace(/:\w+/g, "[^/]+")}$`) };
});

/** Checks the status and the content type of every answer of a documented route against the OpenAPI document. */
async function documented(subject: ApiSubject): Promise<ApiSubject> {
  const { paths } = (await openApi(ROUTES)).document;
  const check = (method: string, url: string, response: Response): void => {
    const pathname = url.split("?")[0] ?? "";
    const route = PATTERNS.find((r) => r.method === method && r.pattern.test(pathname));
    if (route === undefined) return;
    const operation = paths[route.path.replace(/:(\w+)/g, "{$1}")]?.[method.toLowerCase()];
    const responses = operation?.["responses"] as Record<string, { content?: Record<string, unknown> }>;
    const described = responses[String(response.status)];
    expect(described, `${method} ${route.path} answers ${response.status}`).toBeDefined();
    // only a 304 has no content
    const types = response.status === 304 ? [""] : Object.keys(described?.content ?? {});
    const type = response.headers.get("content-type")?.split(";")[0] ?? "";
    expect(types, `${method} ${route.path} ${response.status}`).toContain(type);
  };
  return {
    ...subject,
    fetch: async (path, init) => {
      const response = await subject.fetch(path, init);
      check(init?.method ?? "GET", path, response);
      return response;
    },
  };
}
