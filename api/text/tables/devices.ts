import type { DeviceOptions, DevicesDecision } from "../../model/devices.ts";
import { type Color, type Paint, printable } from "../style.ts";
import { bar, type Glyph, table } from "../table.ts";
import { listText, placementsTable, podName, type Shown, sections, verdictText } from "./shown.ts";

/** The counts of one resource, in whole devices. */
interface Counts {
  readonly capacity: number;
  readonly allocatable: number;
  readonly allocated: number;
}
const BAR_WIDTH = 24;

export const DEVICE_GLYPHS: readonly Glyph[] = [
  ["green", "█", "held"],
  ["dim", "·", "free"],
  ["red", "×", "not healthy"],
];

/** A cell a device while there are few. */
export function deviceBar({ capacity, allocatable, allocated }: Counts, paint: Paint): string {
  const all = Math.max(capacity, allocated);
  const free = Math.max(0, allocatable - allocated);
  const sizes = [allocated, free, all - allocated - free];
  const parts = DEVICE_GLYPHS.map(([color, glyph], i) => ({
    size: sizes[i] as number,
    draw: (cells: number) => paint(color, glyph.repeat(cells)),
  }));
  return bar(parts, Math.min(BAR_WIDTH, all));
}

export const PLUGIN_COLOR: Readonly<Record<"registered" | "stopped" | "unregistered" | "removed", Color>> = {
  registered: "green",
  stopped: "yellow",
  unregistered: "yellow",
  removed: "red",
};

/** Plugins' resources, who holds which devices, what the asked pod gets, and what is not settled yet. */
export function devicesTable(shown: Shown<DevicesDecision>): string {
  const { decision, paint } = shown;
  const verdict = verdictText(shown);
  if (decision.startErrors.length > 0) return verdict;
  const { purged } = decision;
  const gone = purged.length === 0 ? "" : `taken back from pods that are gone: ${listText(purged, " ")}\n`;
  return sections(
    verdict,
    resourcesTable(shown),
    assignedTable(shown),
    `${holdersTable(shown)}${paint("dim", gone)}`,
    conflictsTable(shown),
    placementsTable(shown, decision.refusal !== null || decision.assigned.length === 0),
    questionsTable(shown),
  );
}

function resourcesTable({ decision, columns, paint, notesAt }: Shown<DevicesDecision>): string {
  if (decision.resources.length === 0) return paint("dim", "no plugin has registered a resource\n");
  const drawn = table(
    [
      { title: "RESOURCE", shrinkTo: 12 },
      { title: "PLUGIN", giveUp: 2 },
      { title: "CAPACITY", align: "right" },
      { title: "ALLOCATABLE", align: "right" },
      { title: "HELD", align: "right" },
      { title: "NODE STATUS", align: "right", giveUp: 3 },
      { title: "", giveUp: 1 },
    ],
    decision.resources.map((r) => ({
      cells: [
        printable(r.resource),
        { text: r.plugin, color: PLUGIN_COLOR[r.plugin] },
        `${r.capacity}`,
        `${r.allocatable}`,
        `${r.allocated}`,
        r.sanitized === r.allocatable ? "" : `${r.sanitized}`,
        deviceBar(r, paint),
      ],
      notes: notesAt(r.resource).map((note) => `  ${note}`),
    })),
    columns,
    paint,
  );
  const legend = DEVICE_GLYPHS.map(([color, glyph, text]) => `${paint(color, glyph)} ${text}`).join("   ");
  // in a narrow terminal there are no bars
  return DEVICE_GLYPHS.some(([, glyph]) => drawn.includes(glyph)) ? `${drawn}${legend}\n` : drawn;
}
function assignedTable({ decision, columns, paint, notesAt }: Shown<DevicesDecision>): string {
  if (decision.assigned.length === 0) return "";
  const last = new Map(decision.assigned.map(({ container }, i) => [container, i]));
  return table(
    [
      { title: "CONTAINER", shrinkTo: 10 },
      { title: "RESOURCE", shrinkTo: 10 },
      { title: "REUSED", shrinkTo: 8 },
      { title: "PREFERRED", shrinkTo: 8 },
      { title: "ALIGNED", shrinkTo: 8 },
      { title: "DEVICES", shrinkTo: 8 },
    ],
    decision.assigned.map(({ container, resource, devices, reused, preferred, aligned }, i) => {
      const marked = new Set([...reused, ...preferred, ...aligned]);
      const others = devices.filter((id) => !marked.has(id));
      const lists = [reused, preferred, aligned, others].map((ids) => listText(ids, " "));
      const notes = last.get(container) === i ? notesAt(container).map((note) => `  ${note}`) : [];
      return { cells: [printable(container), printable(resource), ...lists], notes };
    }),
    columns,
    paint,
  );
}

function holdersTable({ decision, columns, paint }: Shown<DevicesDecision>): string {
  if (decision.assignments.length === 0) return "";
  return table(
    [
      { title: "POD", shrinkTo: 12 },
      { title: "CONTAINER", shrinkTo: 8 },
      { title: "RESOURCE", shrinkTo: 10 },
      { title: "DEVICES", shrinkTo: 8 },
      { title: "ALSO GIVEN", giveUp: 1, shrinkTo: 10 },
    ],
    decision.assignments.flatMap(({ pod, container, devices, options, pending }) =>
      Object.entries(devices).map(([resource, ids], i) => ({
        cells: [
          i === 0 ? podName(pod) : "",
          i === 0 ? printable(container) : "",
          printable(resource),
          listText(ids, " "),
          pending.includes(resource) ? "(its plugin has not answered)" : i === 0 ? withText(options) : "",
        ],
      })),
    ),
    columns,
    paint,
  );
}

/** `2 envs, 1 device node`. */
function withText(options: DeviceOptions | null): string {
  if (options === null) return "";
  const { envs, mounts, devices, annotations, cdiDevices } = options;
  const counts = [
    [envs.length, "env"],
    [mounts.length, "mount"],
    [devices.length, "device node"],
    [annotations.length, "annotation"],
    [cdiDevices.length, "CDI device"],
  ] as const;
  const present = counts.filter(([count]) => count > 0);
  return present.map(([count, what]) => `${count} ${what}${count === 1 ? "" : "s"}`).join(", ");
}

function conflictsTable({ decision, columns, paint }: Shown<DevicesDecision>): string {
  const rows = decision.assignments.flatMap(({ pod, container, options }) =>
    (options?.conflicts ?? []).map(({ kind, name, kept, dropped }) => ({
      cells: [
        { text: `${kind} ${printable(name)}`, color: "red" } as const,
        `${podName(pod)} ${printable(container)}`,
        printable(`${kept.value} of ${kept.resource}`),
        printable(`${dropped.value} of ${dropped.resource}`),
      ],
    })),
  );
  if (rows.length === 0) return "";
  const titles = ["CONFLICT", "OF", "KEPT", "IS DROPPED"];
  return table(
    titles.map((title) => ({ title, shrinkTo: 10 })),
    rows,
    columns,
    paint,
  );
}

function questionsTable({ decision, columns, paint }: Shown<DevicesDecision>): string {
  if (decision.unanswered.length === 0) return "";
  const drawn = table(
    [
      { title: "PLUGIN CALLED", shrinkTo: 12 },
      { title: "SIZE", align: "right" },
      { title: "MUST INCLUDE", shrinkTo: 8 },
      { title: "AVAILABLE", shrinkTo: 8 },
    ],
    decision.unanswered.map(({ resource, size, mustInclude, available }) => ({
      cells: [printable(resource), `${size}`, listText(mustInclude, " "), listText(available, " ")],
    })),
    columns,
    paint,
  );
  const advice = "the natural order of ids is used instead; give the answers with --device-plugins ([].preferred)";
  return `${drawn}${paint("dim", advice)}\n`;
}

/** v1.ContainerStatus, of which more may be known. */
interface DevicesOfContainer {
  readonly allocatedResourcesStatus?:
    | readonly {
        readonly name: string;
        readonly resources?:
          | readonly {
              readonly resourceID: string;
              readonly health?: string | undefined;
              readonly message?: string | undefined;
            }[]
          | undefined;
      }[]
    | undefined;
}
/**
 * `device gpu.example.com/n1/gpu-0 (claim:gpu) is Unhealthy: too hot`, of each device. Many drivers tell of no health at all, so
 * `ill` leaves those out that are `Unknown`.
 */
export const healthTexts = (
  { allocatedResourcesStatus = [] }: DevicesOfContainer,
  which: "all" | "ill",
): readonly string[] =>
  allocatedResourcesStatus.flatMap(({ name, resources = [] }) =>
    resources
      .filter(({ health }) => which === "all" || health === "Unhealthy")
      .map(
        ({ resourceID, health = "Unknown", message = "" }) =>
          `device ${resourceID} (${name}) is ${health}${message === "" ? "" : `: ${message}`}`,
      ),
  );
