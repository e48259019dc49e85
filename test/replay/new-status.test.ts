import { expect, test } from "vitest";
import { decideKind } from "../../api/decide/kinds/index.ts";
import type { Snapshot } from "../../api/model/snapshot.ts";
import { effectiveSnapshot } from "../../api/profiles/effective.ts";
import type { Profile } from "../../api/profiles/profile.ts";
import { v1_36 } from "../../api/profiles/v1_36.ts";
import { v1_37 } from "../../api/profiles/v1_37.ts";
import { withNewStats, withNewStatus as withNewStatusOf } from "../../api/service/replay/new-status.ts";
import { appOver } from "../api/serving.ts";
import { podManifest } from "../kit/manifests.ts";
import { requesting } from "../kit/pods.ts";
import { captured } from "../kit/real-node.ts";
import { decoded } from "../kit/snapshots.ts";

interface Answer {
  readonly id: string;
  readonly decision: { readonly admit: boolean };
  readonly replayed: { readonly decision: unknown };
}
const CAPTURED = captured("snapshot.json");

function snapshotWith(change: (raw: typeof CAPTURED) => void): Snapshot {
  const raw = structuredClone(CAPTURED);
  change(raw);
  return decoded(raw);
}
const more = (raw: typeof CAPTURED): void => {
  raw.kubeletConfiguration = { ...raw.kubeletConfiguration, kubeReserved: { cpu: "1", memory: "1Gi" } };
};
const withNewStatus = (before: Snapshot, after: Snapshot): Snapshot =>
  withNewStatusOf(effectiveSnapshot(before), effectiveSnapshot(after));
const allocatable = (snapshot: Snapshot): Record<string, string> =>
  Object.fromEntries(Object.entries(snapshot.node?.status?.allocatable ?? {}).map(([name, q]) => [name, q.text]));

test("a replayed node reports the allocatable of its new configuration", () => {
  const after = snapshotWith(more);
  const decided = decideKind("allocatable", { snapshot: after, facts: {}, ask: undefined, explain: "off" });
  if (!decided.ok) throw new Error(decided.error.message);
  const wanted = (decided.value.decision as { allocatable: Record<string, string> }).allocatable;
  const now = allocatable(
    withNewStatus(
      snapshotWith(() => {}),
      after,
    ),
  );
  expect(now["cpu"]).toBe(wanted["cpu"]);
  expect(now["memory"]).toBe(wanted["memory"]);
  expect(now["cpu"]).not.toBe(allocatable(after)["cpu"]);
  expect(now["pods"]).toBe(allocatable(after)["pods"]);
});

test("an amount that the recorded configuration does not explain stays as recorded", () => {
  const own = (raw: typeof CAPTURED): void => {
    raw.node.status.allocatable.cpu = "1234m";
    raw.node.status.allocatable["example.com/gpu"] = "3";
  };
  const after = snapshotWith((raw) => {
    own(raw);
    more(raw);
  });
  const now = allocatable(withNewStatus(snapshotWith(own), after));
  expect(now).toMatchObject({ cpu: "1234m", "example.com/gpu": "3" });
  expect(now["memory"]).not.toBe(allocatable(after)["memory"]);
});

test("a changed maxPods changes the pod capacity, and other amounts stay the same objects", () => {
  const before = snapshotWith(() => {});
  const after = snapshotWith((raw) => {
    raw.kubeletConfiguration = { ...raw.kubeletConfiguration, maxPods: 15 };
  });
  const { capacity, allocatable: left } = withNewStatus(before, after).node?.status ?? {};
  expect([capacity?.["pods"]?.text, left?.["pods"]?.text]).toEqual(["15", "15"]);
  expect(capacity?.["memory"]).toBe(after.node?.status?.capacity?.["memory"]);
  expect(left?.["cpu"]).toBe(after.node?.status?.allocatable?.["cpu"]);
  const same = effectiveSnapshot(before);
  expect(withNewStatusOf(same, same)).toBe(same);
});

test("without maxPods the pod capacity is the kubelet's default, if it came from the configuration before", () => {
  const without = (raw: typeof CAPTURED): void => {
    const { maxPods: _, ...rest } = raw.kubeletConfiguration;
    raw.kubeletConfiguration = rest;
  };
  const podsOf = ({ node }: Snapshot) => [
    node?.status?.capacity?.["pods"]?.text,
    node?.status?.allocatable?.["pods"]?.text,
  ];
  const before = snapshotWith(() => {});
  const after = snapshotWith(without);
  expect([podsOf(before), podsOf(withNewStatus(before, after))]).toEqual([
    ["20", "20"],
    ["110", "110"],
  ]);
  // the recorded configuration does not set maxPods, so a flag may have set it
  const flagged = snapshotWith(without);
  expect(podsOf(withNewStatus(flagged, after))).toEqual(["20", "20"]);
  // the number in the status is not the kubelet's own
  const other = (raw: typeof CAPTURED): void => {
    for (const list of ["capacity", "allocatable"]) raw.node.status[list].pods = "17";
  };
  const changed = snapshotWith((raw) => {
    other(raw);
    without(raw);
  });
  expect(podsOf(withNewStatus(snapshotWith(other), changed))).toEqual(["17", "17"]);
});

test("without podsPerCore the pod capacity is the kubelet's default, too", () => {
  const perCore =
    (podsPerCore: number) =>
    (raw: typeof CAPTURED): void => {
      const { maxPods: _, ...rest } = raw.kubeletConfiguration;
      raw.kubeletConfiguration = { ...rest, podsPerCore };
      const pods = `${Number(raw.node.status.capacity.cpu)}`;
      for (const list of ["capacity", "allocatable"]) raw.node.status[list].pods = pods;
    };
  const { status } = withNewStatus(snapshotWith(perCore(1)), snapshotWith(perCore(0))).node ?? {};
  expect(status?.capacity?.["pods"]?.text).toBe("110");
});

test("ephemeral-storage is reported once isolation is on, and stays when it is switched off", () => {
  const isolation = (raw: typeof CAPTURED, localStorageCapacityIsolation: boolean): void => {
    const { "ephemeral-storage": _, ...evictionHard } = raw.kubeletConfiguration.evictionHard;
    for (const name of ["kubeReserved", "systemReserved"]) delete raw.kubeletConfiguration[name]["ephemeral-storage"];
    raw.kubeletConfiguration = { ...raw.kubeletConfiguration, localStorageCapacityIsolation, evictionHard };
  };
  const bare = (raw: typeof CAPTURED): void => {
    for (const list of ["capacity", "allocatable"]) delete raw.node.status[list]["ephemeral-storage"];
  };
  const alone = snapshotWith((raw) => {
    isolation(raw, false);
    bare(raw);
  });
  const apart = snapshotWith((raw) => {
    isolation(raw, true);
    bare(raw);
  });
  const { capacity, allocatable: left } = withNewStatus(alone, apart).node?.status ?? {};
  const bytes = CAPTURED.stats.node.fs.capacityBytes;
  expect(capacity?.["ephemeral-storage"]?.amount).toBe(bytes * 1000);
  expect(left?.["ephemeral-storage"]?.amount).toBeGreaterThan(0);
  const reported = snapshotWith((raw) => isolation(raw, true));
  const untold = snapshotWith((raw) => isolation(raw, false));
  expect(withNewStatus(reported, untold).node?.status).toEqual(untold.node?.status);
});

test("the status stays for a configuration that refuses the start, and for a node without a status", () => {
  const before = snapshotWith(() => {});
  const stuck = snapshotWith((raw) => {
    raw.kubeletConfiguration = { ...raw.kubeletConfiguration, kubeReserved: { memory: "900Gi" } };
  });
  const after = effectiveSnapshot(stuck);
  expect(withNewStatusOf(effectiveSnapshot(before), after)).toBe(after);
  const unseen = snapshotWith((raw) => {
    more(raw);
    delete raw.node.status.allocatable;
    delete raw.node.status.capacity;
  });
  const seen = effectiveSnapshot(unseen);
  expect(withNewStatusOf(effectiveSnapshot(before), seen)).toBe(seen);
});

test("memory of huge pages is subtracted from available memory in 1.37, and not in 1.36", () => {
  const pages = snapshotWith((raw) => {
    raw.node.status.capacity["hugepages-2Mi"] = "4Gi";
  });
  const available = (from: Profile, to: Profile): number | undefined =>
    withNewStats(effectiveSnapshot(pages, from), effectiveSnapshot(pages, to)).stats?.node?.memory?.availableBytes;
  const count = pages.stats?.node?.memory?.availableBytes ?? 0;
  expect(available(v1_36, v1_37)).toBe(count - 2 ** 32);
  expect(available(v1_37, v1_36)).toBe(count + 2 ** 32);
  expect([available(v1_36, v1_36), available(v1_37, v1_37)]).toEqual([count, count]);
});

/**
 * The what-if page about the admission of a pod, with maxPods 9 and eleven running pods, on a node whose status reports
 * `pods`.
 */
async function whatIf(pods: string, change = "maxPods: 9", from = 'id="admission"'): Promise<string> {
  const node = structuredClone(CAPTURED.node);
  node.status.allocatable.pods = pods;
  const form = new FormData();
  const kept = JSON.stringify({ ...CAPTURED, node });
  const pod = JSON.stringify(podManifest("asks"));
  for (const [name, text] of Object.entries({ kept, pod, change })) form.append(name, text);
  const encoded = new Response(form);
  const type = encoded.headers.get("content-type") ?? "";
  const headers = { accept: "text/html", "content-type": type };
  const { app } = appOver({});
  const page = await app.request("/what-if", { method: "POST", body: await encoded.arrayBuffer(), headers });
  expect(page.status).toBe(200);
  const text = await page.text();
  return text.slice(text.indexOf(from), text.indexOf('id="cpus"'));
}

test("the what-if page decides on the new status", async () => {
  expect(await whatIf("20")).toContain("OutOfpods");
  // the number in the status is not the kubelet's own
  const other = await whatIf("110");
  expect(other).toContain("admission");
  expect(other).not.toContain("OutOfpods");
  const without = await whatIf("20", "maxPods: null", "<main");
  expect(without).not.toContain("No decision would change");
  expect(without).toContain("110");
});

test("a pod admitted as recorded is refused when replayed with a larger reserve", async () => {
  const { app } = appOver({});
  const post = async (path: string, body: object): Promise<Answer> => {
    const headers = { "content-type": "application/json" };
    const response = await app.request(path, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.status, await response.clone().text()).toBe(200);
    return response.json() as Promise<Answer>;
  };
  const pod = requesting("asks", { memory: "1Gi" });
  const { id, decision } = await post("/v1/decisions/admission", { snapshot: CAPTURED, ask: { pod } });
  expect(decision.admit).toBe(true);
  const kubeletConfigurationPatch = { kubeReserved: { memory: "22Gi" } };
  const again = await post(`/v1/decisions/${id}/replay`, { kubeletConfigurationPatch });
  expect(again.replayed.decision).toMatchObject({ admit: false, wouldRefuse: [{ reason: "OutOfmemory" }] });
  expect(await post(`/v1/decisions/${id}/replay`, {})).toMatchObject({ same: true });
});

test("a replay without maxPods differs in pods, for one decision and through the history", async () => {
  const { app } = appOver({});
  const post = async (path: string, body: object) => {
    const headers = { "content-type": "application/json" };
    const response = await app.request(path, { method: "POST", headers, body: JSON.stringify(body) });
    expect(response.status, await response.clone().text()).toBe(200);
    return response.json() as Promise<{ id: string; differences: unknown; changed: { differences: unknown }[] }>;
  };
  const { id } = await post("/v1/decisions/allocatable", { snapshot: CAPTURED });
  const { maxPods, ...without } = CAPTURED.kubeletConfiguration;
  const wanted = { path: "allocatable.pods", recorded: "20", replayed: "110" };
  for (const change of [{ kubeletConfigurationPatch: { maxPods: null } }, { kubeletConfiguration: without }]) {
    expect((await post(`/v1/decisions/${id}/replay`, change)).differences).toContainEqual(wanted);
    const { changed } = await post("/v1/replay", change);
    expect(changed[0]?.differences).toContainEqual(wanted);
  }
  expect(maxPods).toBe(20);
});
