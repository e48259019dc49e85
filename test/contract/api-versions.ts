import { expect, test } from "vitest";
import { lintAnswer } from "../../api/http/openapi/answers.ts";
import { decisionAnswer, fullDecision, replayAnswer } from "../../api/http/openapi/decision-answers.ts";
import { decisionList } from "../../api/http/openapi/list-answers.ts";
import { upgradeAnswer } from "../../api/http/upgrade.ts";
import { minorOf, NEWEST, PROFILES } from "../../api/profiles/index.ts";
import { historyReplay } from "../../api/service/replay/replay-answer.ts";
import { container } from "../kit/containers.ts";
import { podOf } from "../kit/pods.ts";
import { KNOWN_VERSIONS } from "../kit/profiles.ts";
import { answer, exampleSnapshot, fresh, get, type Of, post, problemOf, send } from "./api-subject.ts";
import { value } from "./store-rows.ts";

/**
 * The sidecar has limits, and the init container after it has none: 1.37 treats the pod as unlimited, earlier versions
 * as limited.
 */
const POD = podOf([container("app", { cpu: "100m" }, { cpu: "200m", memory: "64Mi" })], {
  initContainers: [
    { ...container("side", { cpu: "50m" }, { cpu: "50m", memory: "32Mi" }), restartPolicy: "Always" },
    container("bare"),
  ],
});
const limitedOn = (node: string, kubeletVersion?: string) => {
  const capacity = { cpu: "4", memory: "8Gi", pods: "110" };
  const status = { capacity, ...(kubeletVersion && { nodeInfo: { kubeletVersion } }) };
  const cgroup = { version: 1, driver: "cgroupfs" };
  return exampleSnapshot(node, { node: { metadata: { name: node }, status }, cgroup, pods: [POD] });
};
const decide = async (of: Of, body: object) => answer(await post(of(), "/v1/decisions/cgroups", body), decisionAnswer);
const quotasIn = (decision: unknown): number =>
  (decision as { cgroups: { level: string; values: { cpuQuota?: number } }[] }).cgroups.filter(
    ({ level, values }) => level === "pod" && (values.cpuQuota ?? 0) > 0,
  ).length;

const exact = (version: string) => ({ version, exact: true, why: null });

/** A snapshot is decided with the rules of its own kubelet's version. */
export function versions(of: Of): void {
  test.each(PROFILES)(
    "the node's own kubelet $version takes precedence, and the answer says so when another was asked for",
    async (profile) => {
      const { version, release, policyVersion } = profile;
      const asked = { snapshot: limitedOn(fresh("node"), `v${release}`), kubeletVersion: "1.35" };
      const answered = await decide(of, asked);
      const why = version === "1.35" ? null : `the node reports kubelet v${release}, which takes precedence over 1.35`;
      expect(answered).toMatchObject({ policyVersion, profile: { version, exact: true, why } });
      expect(quotasIn(answered.decision)).toBe((minorOf(version) ?? 0) >= 37 ? 0 : 1);
    },
  );

  test("decisions are listed by their kubelet version, for a node, for all, and on pages", async () => {
    const node = fresh("node");
    const snapshot = limitedOn(node);
    const of36 = await decide(of, { snapshot, kubeletVersion: "1.36" });
    const of37 = await decide(of, { snapshot, kubeletVersion: "1.37" });
    const ids = async (path: string) =>
      (await answer(await get(of(), path), decisionList)).decisions.map(({ id }) => id);
    expect(await ids(`/v1/nodes/${node}/decisions?kubelet=1.36`)).toEqual([of36.id]);
    expect(await ids(`/v1/nodes/${node}/decisions?kubelet=v1.37.2`)).toEqual([of37.id]);
    expect(await ids(`/v1/decisions?kubelet=1.36&node=${node}`)).toEqual([of36.id]);
    // other tests insert rows there directly, without an API
    const ofAll = await (await get(of(), "/v1/decisions?kubelet=1.36&since=1h")).text();
    expect(ofAll).toContain(of36.id);
    expect(ofAll).not.toContain(of37.id);
    expect(await ids(`/v1/nodes/${node}/decisions?kubelet=1.35`)).toEqual([]);
    for (const path of [`/nodes/${node}/decisions?kubelet=1.36`, `/decisions?kubelet=1.36&node=${node}`]) {
      const page = await (await get(of(), path, { accept: "text/html" })).text();
      expect(page).toContain(`href="/decisions/${of36.id}"`);
      expect(page).not.toContain(`href="/decisions/${of37.id}"`);
      expect(page).toContain('<option value="1.36" selected>');
    }
    for (const kubelet of ["", "newest", "1.99"]) {
      const { issues } = await problemOf(await get(of(), `/v1/decisions?kubelet=${kubelet}`), "invalid_query");
      expect(issues?.[0]?.path).toBe("kubelet");
    }
  });

  test("the request's version is used when the node reports none, else the newest", async () => {
    const snapshot = limitedOn(fresh("node"));
    const named = await decide(of, { snapshot, kubeletVersion: "v1.35.1" });
    expect(named).toMatchObject({ policyVersion: "kubelet-1.35+5", profile: exact("1.35") });
    const newest = await decide(of, { snapshot, kubeletVersion: null });
    const why = `no kubelet version is given: ${NEWEST.version}, the newest that is known here, answers`;
    expect(newest.profile).toEqual({ version: NEWEST.version, exact: false, why });
    expect([quotasIn(named.decision), quotasIn(newest.decision)]).toEqual([1, 0]);
    expect(named.id).not.toBe(newest.id);
    const older = await decide(of, { snapshotId: named.snapshotId, kubeletVersion: "1.34" });
    expect(older.profile).toEqual(exact("1.34"));
  });

  test.each([
    ["v1.99.0", NEWEST.version, `kubelet 1.99 is not known here: ${NEWEST.version} is the nearest that is`],
    ["v1.33.13-eks-1", "1.34", "kubelet 1.33 is not known here: 1.34 is the nearest that is"],
  ])("an unknown kubelet %s is decided as %s, with the cause in the answer", async (kubeletVersion, version, why) => {
    const answered = await decide(of, { snapshot: limitedOn(fresh("node"), kubeletVersion) });
    expect(answered.profile).toEqual({ version, exact: false, why });
    const asked = await decide(of, { snapshot: limitedOn(fresh("node"), kubeletVersion), kubeletVersion: "1.36" });
    const before = `the node reports kubelet ${kubeletVersion}, which takes precedence over 1.36`;
    expect(asked.profile).toEqual({ version, exact: false, why: `${before}; ${why}` });
  });

  test("an invalid version is refused with its path", async () => {
    const snapshot = limitedOn(fresh("node"));
    const message = "must be a version of the kubelet, such as 1.37 or v1.37.2";
    for (const kubeletVersion of ["", "banana", "1", "v2.0", "1.37 ", 1.37, ["1.37"]]) {
      const wrong = await problemOf(
        await post(of(), "/v1/decisions/cgroups", { snapshot, kubeletVersion }),
        "invalid_input",
      );
      expect(wrong.issues).toEqual([{ path: "kubeletVersion", message }]);
    }
    for (const path of ["/v1/replay", "/v1/lint"]) {
      const body = path === "/v1/lint" ? { kubeletConfiguration: {}, kubeletVersion: "x" } : { kubeletVersion: "x" };
      const wrong = await problemOf(await post(of(), path, body), "invalid_input");
      expect(wrong.issues).toEqual([{ path: "kubeletVersion", message }]);
    }
  });
}

/** The version in a record: the snapshot's own, or the one that the request named. */
function recordedProfiles(of: Of): void {
  const recorded = async (id: string) => answer(await get(of(), `/v1/decisions/${id}`), fullDecision);

  test.each([
    ["v1.36.3", "1.36", null],
    ["v1.36.3", "1.36", "1.35"],
    ["v1.33.13-eks-1", "1.34", null],
    ["", "1.35", "v1.35.2"],
    ["", NEWEST.version, "1.99"],
  ])(
    "a recorded decision on a node of %j has version %s, and says that %j was asked for",
    async (own, version, asked) => {
      const answered = await decide(of, { snapshot: limitedOn(fresh("node"), own), kubeletVersion: asked });
      expect(answered.profile.version).toBe(version);
      const named = asked === null ? {} : { kubeletVersion: asked };
      const reported = ({ profile, kubeletVersion }: { profile: object; kubeletVersion?: string | undefined }) => ({
        profile,
        ...(kubeletVersion === undefined ? {} : { kubeletVersion }),
      });
      expect(reported(answered)).toEqual({ profile: answered.profile, ...named });
      expect(reported(await recorded(answered.id))).toEqual({ profile: answered.profile, ...named });
    },
  );

  test("naming the newest version and naming none are two decisions when the node reports none", async () => {
    const snapshot = limitedOn(fresh("node"));
    const [named, none] = [
      await decide(of, { snapshot, kubeletVersion: NEWEST.version }),
      await decide(of, { snapshot }),
    ];
    expect(named.id).not.toBe(none.id);
    expect((await recorded(named.id)).profile).toEqual(exact(NEWEST.version));
    const why = `no kubelet version was given: ${NEWEST.version}, the newest that was known then, answered`;
    expect((await recorded(none.id)).profile).toEqual({ version: NEWEST.version, exact: false, why });
  });

  test("a decision of another policy version says so, even when its snapshot is gone", async () => {
    const { store } = of();
    const { id } = await decide(of, { snapshot: limitedOn(fresh("node"), "v1.35.4") });
    const decision = value(await store.getDecision(id));
    if (decision === null) throw new Error("not recorded");
    const older = { ...decision, id: hex(), policyVersion: "kubelet-1.36.3+6" };
    value(await store.record({ decision: older }));
    const why = "the node reports kubelet v1.35.4, and 1.36 answered then";
    expect((await recorded(older.id)).profile).toEqual({ version: "1.36", exact: false, why });
    const bare = { ...decision, id: hex(), snapshotId: null };
    value(await store.record({ decision: bare }));
    expect((await recorded(bare.id)).profile).toEqual({
      version: "1.35",
      exact: false,
      why: "no snapshot of it is stored: whether the node reported kubelet 1.35 is not known",
    });
  });
}

const WORDS = ["fake", "devel", "v2.0", "1.37 ", "37"];

/** Words that are not versions, as a node's kubeletVersion. */
function wordsForVersions(of: Of): void {
  test.each(WORDS)("the node's version %j is refused with its path", async (word) => {
    const snapshot = limitedOn(fresh("node"), word);
    const message = "must be a version of the kubelet, such as 1.37 or v1.37.2, or left out";
    for (const [path, more] of [
      ["/v1/decisions/cgroups", {}],
      ["/v1/lint", { kubeletConfiguration: {} }],
      ["/v1/upgrade", { to: "1.37", from: "1.36" }],
    ] as const) {
      const { issues } = await problemOf(await post(of(), path, { snapshot, ...more }), "invalid_input");
      expect(issues).toEqual([{ path: "snapshot.node.status.nodeInfo.kubeletVersion", message }]);
    }
    const put = await send(of(), "PUT", `/v1/nodes/${fresh("node")}/snapshot`, snapshot);
    const { issues } = await problemOf(put, "invalid_input");
    expect(issues).toEqual([{ path: "node.status.nodeInfo.kubeletVersion", message }]);
  });

  test.each(["", "1.36", "v1.36.3", "v1.36.3-gke.100", "v1.35.4+k3s1", "v1.36.0-alpha.1"])(
    "the node's version %j is accepted",
    async (version) => {
      await decide(of, { snapshot: limitedOn(fresh("node"), version) });
    },
  );

  test("rows recorded with an invalid version are listed, shown and replayed", async () => {
    const { store } = of();
    const asked = await decide(of, { snapshot: limitedOn(fresh("node")) });
    const node = fresh("node");
    const [decision, stored] = [
      value(await store.getDecision(asked.id)),
      value(await store.getSnapshot(asked.snapshotId ?? "")),
    ];
    const body = JSON.stringify(limitedOn(node, "fake"));
    const [id, snapshotId] = [hex(), hex()];
    const rows = {
      decision: { ...decision, id, node, snapshotId },
      snapshot: { ...stored, id: snapshotId, node, body },
    };
    value(await store.record(rows as Parameters<typeof store.record>[0]));

    const list = await answer(await get(of(), `/v1/nodes/${node}/decisions`), decisionList);
    expect(list.decisions.map((row) => row.id)).toEqual([id]);
    const again = await answer(await post(of(), `/v1/decisions/${id}/replay`, {}), replayAnswer);
    expect(again).toMatchObject({ same: true, replayed: { policyVersion: NEWEST.policyVersion } });
    const history = await answer(await post(of(), "/v1/replay", { node }), historyReplay);
    expect(history.counts).toMatchObject({ replayed: 1, same: 1 });
    const { profile } = await decide(of, { snapshotId });
    expect(profile).toMatchObject({ version: NEWEST.version, exact: false });
    await answer(await post(of(), "/v1/lint", { node, kubeletConfiguration: {} }), lintAnswer);
    const { needs } = await problemOf(await post(of(), "/v1/upgrade", { node, to: "1.37" }), "needs_input");
    expect(needs).toEqual(["from"]);
    await answer(await post(of(), "/v1/upgrade", { node, to: "1.37", from: "1.36" }), upgradeAnswer);
    for (const path of [`/v1/snapshots/${snapshotId}`, `/nodes/${node}`, `/decisions/${id}`, `/lint?node=${node}`]) {
      expect([path, (await get(of(), path)).status]).toEqual([path, 200]);
    }
    for (const path of [`/what-if?node=${node}`, `/upgrade?node=${node}&to=1.37&from=1.36`, `/replay?node=${node}`]) {
      expect([path, (await get(of(), path)).status]).toEqual([path, 200]);
    }
  });
}
const hex = (): string => crypto.randomUUID().replaceAll("-", "");

/** Repeated requests, for the same kubelet version or another. */
export function versionsAgain(of: Of): void {
  wordsForVersions(of);
  recordedProfiles(of);
  test("a decision is replayed for its own kubelet version, or for the asked one", async () => {
    const node = fresh("node");
    const { id } = await decide(of, { snapshot: limitedOn(node), kubeletVersion: "1.35" });
    const replay = async (body: object) => answer(await post(of(), `/v1/decisions/${id}/replay`, body), replayAnswer);
    const own = await replay({});
    expect(own).toMatchObject({ same: true, replayed: { policyVersion: "kubelet-1.35+5" } });
    for (const body of [{ kubeletVersion: NEWEST.version }, { policyVersion: NEWEST.policyVersion }]) {
      const other = await replay(body);
      expect(other).toMatchObject({ same: false, replayed: { policyVersion: NEWEST.policyVersion } });
      expect(other.differences.map(({ path }) => path)).toContainEqual(expect.stringMatching(/\.values\.cpuQuota$/));
    }
    const both = { kubeletVersion: NEWEST.version, policyVersion: NEWEST.policyVersion };
    await problemOf(await post(of(), `/v1/decisions/${id}/replay`, both), "invalid_input");
    const unknown = await problemOf(await post(of(), "/v1/replay", { kubeletVersion: "1.99" }), "invalid_input");
    expect(unknown.issues?.[0]?.message).toBe(`kubelet 1.99 is not known here: the versions are ${KNOWN_VERSIONS}`);
    const history = async (body: object) => answer(await post(of(), "/v1/replay", { node, ...body }), historyReplay);
    expect((await history({})).counts).toMatchObject({ same: 1, differs: 0 });
    expect((await history({ kubeletVersion: NEWEST.version })).counts).toMatchObject({ same: 0, differs: 1 });
  });

  test("an Idempotency-Key with another kubelet version is a conflict", async () => {
    const snapshot = limitedOn(fresh("node"));
    const headers = { "idempotency-key": fresh("key") };
    await answer(
      await post(of(), "/v1/decisions/cgroups", { snapshot, kubeletVersion: "1.35" }, headers),
      decisionAnswer,
    );
    const again = await post(of(), "/v1/decisions/cgroups", { snapshot, kubeletVersion: "1.36" }, headers);
    await problemOf(again, "idempotency_conflict");
  });

  test("lint uses the version of the node, else the one asked for", async () => {
    const kubeletConfiguration = { featureGates: { CustomCPUCFSQuotaPeriod: false } };
    const lint = async (body: object) =>
      answer(await post(of(), "/v1/lint", { kubeletConfiguration, ...body }), lintAnswer);
    expect((await lint({ kubeletVersion: "1.34" })).profile).toEqual(exact("1.34"));
    const { profile } = await lint({ snapshot: limitedOn(fresh("node"), "v1.36.3"), kubeletVersion: "1.34" });
    const why = "the node reports kubelet v1.36.3, which takes precedence over 1.34";
    expect(profile).toEqual({ version: "1.36", exact: true, why });
  });
}
