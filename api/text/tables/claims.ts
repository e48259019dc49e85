import type { ClaimsDecision, ClaimWarning, DraCall, PodOfClaims } from "../../model/claims.ts";
import { namespacedName } from "../../model/forms.ts";
import { many, type Sentences } from "../sentences/words.ts";
import { type Color, printable } from "../style.ts";
import { table } from "../table.ts";
import { caption, listText, podName, type Shown, sections } from "./shown.ts";

/**
 * Shows the claims of each pod with the devices of its containers, the claims that are unprepared, and faults of
 * allocations.
 */
export function claimsTable(shown: Shown<ClaimsDecision>): string {
  const { decision, paint } = shown;
  const { startErrors, pods, known, warnings = [] } = decision;
  if (startErrors.length > 0) {
    return startErrors.map((error) => paint("red", `the kubelet does not start: ${printable(error)}\n`)).join("");
  }
  const nothing =
    pods.length === 0 && known.length === 0 && !warnings.some(isNothing)
      ? caption(shown, "no claim of the node is known")
      : "";
  return sections(
    `${endText(shown)}${warningsText(shown)}${nothing}`,
    podsTable(shown),
    callsTable(shown),
    containersTable(shown),
    knownTable(shown),
    givenBackTable(shown),
    extendedTable(shown),
    faultsTable(shown),
    healthTable(shown),
  );
}

function endText({ decision, asked, paint }: Shown<ClaimsDecision>): string {
  const { pods, refusal, warnings = [] } = decision;
  if (refusal !== null && asked !== undefined) {
    return paint("red", `refused: ${podName(asked)}: ${printable(`${refusal.reason}: ${refusal.message}`)}\n`);
  }
  if (asked !== undefined && warnings.some(isNothing)) return "";
  if (asked !== undefined) return paint("green", `its claims can be prepared: ${podName(asked)}\n`);
  const stuck = pods.filter(({ message }) => message !== null);
  return stuck.map(({ pod, message }) => paint("red", `${podName(pod)}: ${printable(message ?? "")}\n`)).join("");
}

/** Why nothing is prepared for the pod that was asked about. */
const isNothing = ({ warning }: ClaimWarning): boolean =>
  ["ended", "being-deleted", "gate-off", "no-claims"].includes(warning);
const warningsText = ({ decision: { warnings = [] }, paint }: Shown<ClaimsDecision>): string =>
  warnings.map(({ about, message }) => paint("yellow", `${printable(`${about}: ${message}`)}\n`)).join("");

const STATE_COLOR: Readonly<Record<PodOfClaims["claims"][number]["state"], Color>> = {
  "not-needed": "dim",
  prepared: "green",
  "to-prepare": "yellow",
  "to-join": "yellow",
  refused: "red",
  "not-reached": "dim",
};
const CALL_TEXT = { done: "", "to-make": "", "left-out": " (not called)" } as const;

function podsTable({ decision, columns, paint, notesAt }: Shown<ClaimsDecision>): string {
  const rows = decision.pods.flatMap(({ pod, claims }) =>
    claims.map(({ entry, claim, state, drivers }, i) => ({
      cells: [
        i === 0 ? podName(pod) : "",
        entry === "" ? "(extended resources)" : printable(entry),
        printable(claim ?? ""),
        { text: state, color: STATE_COLOR[state] },
        listText(
          drivers.map(({ driver, call }) => `${driver}${CALL_TEXT[call]}`),
          " ",
        ),
      ],
      notes: i === claims.length - 1 ? notesAt(namespacedName(pod)).map((note) => `  ${note}`) : [],
    })),
  );
  if (rows.length === 0) return "";
  return table(
    [
      { title: "POD", shrinkTo: 12 },
      { title: "ENTRY", shrinkTo: 8 },
      { title: "RESOURCECLAIM", shrinkTo: 10 },
      { title: "STATE" },
      { title: "DRIVERS", shrinkTo: 10 },
    ],
    rows,
    columns,
    paint,
  );
}

const callCells = ({ driver, service, operation, claims }: DraCall): readonly string[] => [
  operation,
  printable(driver),
  service ?? "(not known)",
  listText(claims.map(namespacedName), " "),
];
function callsTable({ decision, columns, paint }: Shown<ClaimsDecision>): string {
  const calls = [...decision.pods, ...decision.givenBack].flatMap((one) => one.calls);
  if (calls.length === 0) return "";
  return table(
    [
      { title: "CALL" },
      { title: "OF DRIVER", shrinkTo: 10 },
      { title: "SERVICE", giveUp: 1 },
      { title: "FOR CLAIMS", shrinkTo: 12 },
    ],
    calls.map((call) => ({ cells: [...callCells(call)] })),
    columns,
    paint,
  );
}

function containersTable({ decision, columns, paint }: Shown<ClaimsDecision>): string {
  const rows = decision.pods.flatMap(({ pod, containers }) =>
    containers
      .filter(({ cdiDevices, pending, error }) => cdiDevices.length + pending.length > 0 || error !== null)
      .map(({ container, cdiDevices, pending, error }) => ({
        cells: [
          podName(pod),
          printable(container),
          error === null
            ? listText([...cdiDevices, ...(pending.length === 0 ? [] : [`(not known: ${pending.join(" ")})`])], " ")
            : ({ text: printable(error), color: "red" } as const),
        ],
      })),
  );
  if (rows.length === 0) return "";
  return table(
    [
      { title: "POD", shrinkTo: 12 },
      { title: "CONTAINER", shrinkTo: 8 },
      { title: "CDI DEVICES", shrinkTo: 12 },
    ],
    rows,
    columns,
    paint,
  );
}

function knownTable({ decision, columns, paint }: Shown<ClaimsDecision>): string {
  if (decision.known.length === 0) return "";
  return table(
    [
      { title: "DRA_MANAGER_STATE", shrinkTo: 12 },
      { title: "PREPARED" },
      { title: "USED BY", shrinkTo: 12 },
      { title: "DEVICES", shrinkTo: 12 },
    ],
    decision.known.map(({ namespace, name, prepared, pods, drivers }) => ({
      cells: [
        printable(`${namespace}/${name}`),
        prepared ? "yes" : { text: "no", color: "yellow" },
        listText(pods.map(podName), " "),
        listText(
          drivers.flatMap(({ driver, devices }) => devices.map((device) => `${driver}/${device}`)),
          " ",
        ),
      ],
    })),
    columns,
    paint,
  );
}

function givenBackTable({ decision, columns, paint, notesAt }: Shown<ClaimsDecision>): string {
  if (decision.givenBack.length === 0) return "";
  return table(
    [
      { title: "UNPREPARED FOR", shrinkTo: 12 },
      { title: "WHEN", giveUp: 1 },
      { title: "CLAIMS", shrinkTo: 10 },
      { title: "STILL USED", shrinkTo: 10, giveUp: 2 },
    ],
    decision.givenBack.map(({ pod, when, claims, kept, error }) => ({
      cells: [podName(pod), WHEN[when], listText(claims, " "), listText(kept, " ")],
      notes: [
        ...(error === null ? [] : [paint("red", `  ${printable(error)}`)]),
        ...[...claims, ...kept].flatMap((name) => notesAt(`${pod.namespace}/${name}`)).map((note) => `  ${note}`),
      ],
    })),
    columns,
    paint,
  );
}
const WHEN = { "containers-stopped": "its containers have stopped", reconcile: "within a minute" } as const;

const SOURCE_COLOR = { claim: "green", "device-plugin": "green", node: "yellow", nothing: "red" } as const;
function extendedTable({ decision, columns, paint }: Shown<ClaimsDecision>): string {
  if (decision.extendedResources.length === 0) return "";
  return table(
    [
      { title: "POD", shrinkTo: 12 },
      { title: "CONTAINER", shrinkTo: 8 },
      { title: "EXTENDED RESOURCE", shrinkTo: 12 },
      { title: "GIVEN BY" },
      { title: "CLAIM", shrinkTo: 8 },
      { title: "DEVICE CLASS", shrinkTo: 8, giveUp: 1 },
    ],
    decision.extendedResources.map(({ pod, container, resource, by, claim, requests, classes }) => ({
      cells: [
        podName(pod),
        printable(container),
        printable(resource),
        by === null ? "(not known)" : { text: by, color: SOURCE_COLOR[by] },
        claim === null ? "" : printable(`${claim} (${requests.join(" ")})`),
        listText(classes, " "),
      ],
    })),
    columns,
    paint,
  );
}

function faultsTable({ decision, columns, paint, notesAt }: Shown<ClaimsDecision>): string {
  const faults = decision.allocationFaults;
  if (faults.length === 0) return "";
  // the rows say it all
  for (const { claim } of faults) notesAt(claim);
  return table(
    [
      { title: "CLAIM", shrinkTo: 12 },
      { title: "REQUEST", shrinkTo: 8, giveUp: 1 },
      { title: "DEVICE", shrinkTo: 12 },
      { title: "FAULT" },
      { title: "", shrinkTo: 12 },
    ],
    faults.map(({ claim, request, driver, pool, device, fault, message }) => ({
      cells: [
        printable(claim),
        printable(request),
        device === "" ? "" : printable(`${driver}/${pool}/${device}`),
        { text: fault, color: "red" },
        printable(message),
      ],
    })),
    columns,
    paint,
  );
}

const HEALTH_COLOR = { Healthy: "green", Unhealthy: "red", Unknown: "yellow" } as const;
function healthTable({ decision, columns, paint }: Shown<ClaimsDecision>): string {
  const rows = decision.health.flatMap(({ pod, container, claims }) =>
    claims.flatMap(({ name, resources }) =>
      resources.map(({ resourceID, health, message }) => ({
        cells: [
          podName(pod),
          printable(container),
          printable(name),
          printable(resourceID),
          { text: health, color: HEALTH_COLOR[health] },
          printable(message ?? ""),
        ],
      })),
    ),
  );
  if (rows.length === 0) return "";
  return table(
    [
      { title: "POD", shrinkTo: 12 },
      { title: "CONTAINER", shrinkTo: 8 },
      { title: "CLAIM", shrinkTo: 8 },
      { title: "DEVICE", shrinkTo: 12 },
      { title: "HEALTH" },
      { title: "", shrinkTo: 8, giveUp: 1 },
    ],
    rows,
    columns,
    paint,
  );
}

/** The sentences for the reasons of `claims`. */
export const CLAIMS_SENTENCES = {
  allocation_fault: (n) => `device ${n["device"]}: ${n["message"]}`,
  claim_given_back: () => "no other pod uses it: its drivers are asked to unprepare it",
  claim_kept: (n) =>
    `${many(n["pods"], "other pod")} still ${n["pods"] === 1 ? "uses" : "use"} it: no driver is called`,
  claim_not_needed: (n) => `no claim was created for entry ${n["entry"]}: it is skipped`,
  claim_prepared: (n) => `${n["claim"]} is prepared: ${n["drivers"] || "no driver"} is not called again`,
  claim_refused: (n) => `${n["message"]}; it is tried again with the pod's next sync`,
  claim_to_prepare: (n) =>
    n["drivers"] === ""
      ? `${n["claim"]} has no device: no driver is called`
      : `${n["claim"]} is to be prepared by ${n["drivers"]}`,
  claim_to_join: (n) => `${n["claim"]} is prepared for a pod before this one: no driver is called again`,
  cdi_devices_given: (n) => `container ${n["container"]} gets ${n["devices"]}`,
  devices_not_known: (n) => `what container ${n["container"]} gets is known once ${n["drivers"]} has answered`,
  driver_left_out: (n) => `no result of ${n["driver"]} in ${n["claim"]} needs NodePrepareResources: it is not called`,
  drivers_not_known: () => "which drivers have registered is not known: all count as registered",
  dra_off: () =>
    "the gate DynamicResourceAllocation is off: this kubelet prepares no claim, and starts pods without their devices",
  no_claims: () => "no pod of the node has a ResourceClaim, and dra_manager_state has none",
  resource_by_both: (n) =>
    `a device plugin has ${n["resource"]} too, and this kubelet gives container ${n["container"]} devices of both`,
  resource_by_claim: (n) => `${n["resource"]} of container ${n["container"]} is given by the scheduler's claim`,
  resource_by_nothing: (n) => `nothing on the node gives container ${n["container"]} its ${n["resource"]}`,
  resource_by_plugin: (n) => `${n["resource"]} of container ${n["container"]} is given by a device plugin`,
  resource_counted: (n) =>
    `the node's status lists ${n["resource"]}, and no device plugin has it: it counts, and container ${n["container"]} gets no device of it`,
  resource_listed: (n) =>
    `the node's status lists ${n["resource"]} of container ${n["container"]}: a device plugin gives it, unless it was put there by hand`,
  resource_not_known: (n) =>
    `whether anything on the node gives container ${n["container"]} its ${n["resource"]} is not known: neither the node's status nor its devices are given`,
  resource_gate_off: (n) =>
    `a claim provides ${n["resource"]} of container ${n["container"]}, but the gate DRAExtendedResource is off here`,
} satisfies Partial<Sentences>;
