import { slicesHere } from "../../decide/dra/allocation.ts";
import { type DeviceState, healthAt, readHealth } from "../../decide/dra/health.ts";
import { registeredService } from "../../decide/dra/registration.ts";
import { type ClaimsDecision, startFault } from "../../model/claims.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { epochMs } from "../../model/units.ts";
import { profileIn } from "../../profiles/index.ts";
import { html } from "../html.ts";
import type { Html } from "../page.ts";
import type { ListView } from "./lists.ts";
import { type DecidedSnapshot, folded, notKnown, podName, scrolling, undecided } from "./view.ts";

/** Whether the snapshot contains anything about ResourceClaims: a node without drivers does not show this part. */
export function usesClaims({ snapshot: { dra, assignments }, decided: { claims } }: DecidedSnapshot): boolean {
  if (!claims.ok) return true;
  const { pods, known, startErrors } = claims.value.decision;
  const lists = [dra?.drivers, dra?.resourceSlices, pods, known, startErrors];
  return (
    lists.some((list) => (list ?? []).length > 0) ||
    claims.value.needs.includes("dra.resourceClaims") ||
    assignments?.dra_health_state !== undefined
  );
}

/** The claims of the node's pods, as its kubelet has them, and the DRA drivers with the health of their devices. */
export function claimsSection(known: DecidedSnapshot, lists: ListView): Html {
  const { snapshot, decided } = known;
  const { claims: answer } = decided;
  if (!answer.ok) return undecided("claims", TITLE, answer.error);
  const { decision, needs } = answer.value;
  const stuck = decision.pods.filter((pod) => startFault(pod) !== null);
  const count = stuck.length === 1 ? "1 pod does" : `${stuck.length} pods do`;
  const lacks = needs.includes("dra.resourceClaims")
    ? notKnown("Not known: what the pods’ claims are allocated and reserved for", ["dra.resourceClaims"])
    : "";
  return folded(
    "claims",
    TITLE,
    html`${decision.startErrors.map((error) => html`<p class="note bad">The kubelet does not start: ${error}</p>`)}
${lacks}${decision.warnings.map(({ about, message }) => html`<p class="note">${about}: ${message}</p>`)}${claimsTable(decision, lists)}
${driversTable(snapshot, decision)}`,
    lists.asked !== null,
    stuck.length === 0 ? "" : html`<span class="tag bad">${count} not start</span>`,
  );
}
const TITLE = "Claims";

interface ClaimLine {
  readonly claim: string;
  readonly pods: string;
  readonly state: string;
  readonly drivers: string;
  readonly why: string;
}
const TONE: Readonly<Record<string, string>> = {
  prepared: "good",
  "to-prepare": "warn",
  "to-join": "warn",
  refused: "bad",
};
const WORDS: Readonly<Record<string, string>> = {
  "to-prepare": "to prepare",
  "to-join": "to join",
  "not-needed": "not needed",
  "not-reached": "not reached",
};

/** Pods that do not start come first, then the pods' claims, then what others have left. */
function linesOf({ pods, known }: ClaimsDecision): readonly ClaimLine[] {
  const of = pods.flatMap(({ pod, claims, message }) =>
    claims.map(({ entry, claim, state, drivers }) => ({
      claim: claim ?? (entry === "" ? "(extended resources)" : entry),
      namespace: pod.namespace,
      pods: podName(pod),
      state,
      drivers: drivers.map(({ driver }) => driver).join(" "),
      why: state === "refused" ? (message ?? "") : "",
    })),
  );
  const used = new Set(of.map(({ namespace, claim }) => `${namespace}/${claim}`));
  const left = known
    .filter(({ namespace, name }) => !used.has(`${namespace}/${name}`))
    .map(({ name, pods: holders, prepared, drivers }) => ({
      claim: name,
      pods: holders.map(podName).join(" "),
      state: prepared ? "prepared" : "to-prepare",
      drivers: drivers.map(({ driver }) => driver).join(" "),
      why: "",
    }));
  return [...of.filter(({ why }) => why !== ""), ...of.filter(({ why }) => why === ""), ...left];
}

function claimsTable(decision: ClaimsDecision, lists: ListView): Html {
  const lines = linesOf(decision);
  if (lines.length === 0) return html`<p class="soft">No pod of the node has a ResourceClaim.</p>`;
  const { shown, note } = lists.cut("claims", lines);
  const rows = shown.map(
    ({ claim, pods, state, drivers, why }) =>
      html`<tr><td><span class="tag ${TONE[state] ?? ""}">${WORDS[state] ?? state}</span></td><td>${claim}</td><td>${pods}</td><td>${drivers}</td></tr>${why === "" ? "" : html`<tr><td colspan="4" class="small">${why}</td></tr>`}`,
  );
  return html`${scrolling(
    "Table of ResourceClaims",
    html`<table><thead><tr><th>State</th><th>ResourceClaim</th><th>Pod</th><th>Drivers</th></tr></thead><tbody>${rows}</tbody></table>`,
  )}${note}`;
}

/** Every mentioned driver: registered, in a claim, with a slice, or with device health. */
function driversTable(snapshot: Snapshot, { pods, known }: ClaimsDecision): Html {
  const { dra, assignments, node, observedAt } = snapshot;
  const health = readHealth(assignments?.dra_health_state, profileIn(snapshot).behaviour.claims);
  const names = new Set([
    ...(dra?.drivers ?? []).map(({ name }) => name),
    ...slicesHere(dra, node).map(({ spec }) => spec.driver),
    ...[...known, ...pods.flatMap(({ claims }) => claims)].flatMap((one) => one.drivers.map(({ driver }) => driver)),
    ...health.keys(),
  ]);
  if (names.size === 0) return html``;
  const at = healthAt(health, epochMs(observedAt === undefined ? 0 : Date.parse(observedAt)));
  const rows = [...names].sort().map((name) => {
    const driver = dra?.drivers?.find((one) => one.name === name);
    const [tone, word] = registeredIn(dra?.drivers === undefined, driver);
    const devices = [...(health.get(name)?.values() ?? [])];
    return html`<tr><td>${name}</td><td><span class="tag ${tone}">${word}</span></td><td>${healthText(name, devices, at)}</td></tr>`;
  });
  return scrolling(
    "Table of DRA drivers",
    html`<table><thead><tr><th>DRA driver</th><th>Registered</th><th>Health of its devices</th></tr></thead><tbody>${rows}</tbody></table>`,
  );
}

type Driver = NonNullable<NonNullable<Snapshot["dra"]>["drivers"]>[number];
function registeredIn(isOpen: boolean, driver: Driver | undefined): readonly [tone: string, word: string] {
  if (isOpen) return ["", "not known"];
  if (driver === undefined || driver.registered === false) return ["bad", "not registered"];
  const service = registeredService(driver);
  return service.ok ? ["good", service.value] : ["bad", "no service that the kubelet has"];
}

function healthText(driver: string, devices: readonly DeviceState[], at: ReturnType<typeof healthAt>): Html {
  if (devices.length === 0) return html`<span class="soft">not reported</span>`;
  const by = Map.groupBy(devices, ({ poolName, deviceName }) => at(driver, poolName, deviceName).health);
  const sick = by.get("Unhealthy") ?? [];
  const named = sick.slice(0, FEW).map(({ poolName, deviceName }) => `${poolName}/${deviceName}`);
  const others = (["Unknown", "Healthy"] as const).flatMap((one) =>
    by.has(one) ? [`${by.get(one)?.length} ${one}`] : [],
  );
  if (sick.length === 0) return html`${others.join(", ")}`;
  const which = html`<strong class="bad-text">${sick.length} Unhealthy</strong> (${named.join(", ")}${sick.length > FEW ? " …" : ""})`;
  return html`${which}${others.map((one) => `, ${one}`).join("")}`;
}
/** Unhealthy devices that are named. */
const FEW = 3;
