import type { ImageGcDecision, ImageKept, ImageRemoval, PulledAgain } from "../../model/image-gc.ts";
import { IMAGE_GOES, IMAGE_STAYS } from "../sentences/garbage-collection.ts";
import { many } from "../sentences/words.ts";
import { humanBytes } from "../size.ts";
import { type Color, printable } from "../style.ts";
import { bar, type Column, type Glyph, legendText, table } from "../table.ts";
import { agoText, durationText, mayGoText } from "../time-text.ts";
import { eventLines, removalMarks, removalNotes, tieLine } from "./gc-targets.ts";
import { dropNotes, outcome, type Shown, sections, shortened } from "./shown.ts";

const SHORT = 13;
/** A CRI id as crictl shows it: without the algorithm, its first characters. */
export const shortId = (id: string): string => printable(id.replace(/^sha256:/, "").slice(0, SHORT));

/** The place of an image's reasons in a decision. */
const imagePlace = ({ id, runtimeHandler }: Omit<Named, "names">): string =>
  runtimeHandler === "" ? id : `${id},${runtimeHandler}`;

interface Named {
  readonly id: string;
  readonly names: readonly string[];
  readonly runtimeHandler: string;
}
/** The first tag of an image, or its short id; how many tags more; the runtime handler that it is kept for. */
export function imageName({ id, names, runtimeHandler }: Named): string {
  const [first, ...others] = names;
  const name = first === undefined ? shortId(id) : printable(first.replace(DIGEST, "@$1"));
  const more = others.length === 0 ? "" : ` (+${others.length})`;
  return `${name}${more}${runtimeHandler === "" ? "" : ` for ${printable(runtimeHandler)}`}`;
}
const DIGEST = /@sha256:([0-9a-f]{12})[0-9a-f]+$/;

/** The JSON, and `--explain full`, have all. */
const MAX_GO = 25;
const MAX_STAY = 10;
const right = (title: string, giveUp?: number): Column =>
  giveUp === undefined ? { title, align: "right" } : { title, align: "right", giveUp };
const nameColumn = (title: string): Column => ({ title, shrinkTo: 16, cut: "start" });

/** Images that go, in the kubelet's order. */
function goesTable(shown: Shown<ImageGcDecision>): string {
  const { decision, columns, paint, notesAt } = shown;
  const { remove, freedOnceBytes } = decision;
  if (remove.length === 0) return "";
  const { first, more } = shortened(remove, MAX_GO, shown, ({ why }) => IMAGE_GOES[why]);
  dropNotes(shown, remove.slice(first.length).map(imagePlace));
  const once = ({ exclusiveBytes, sizeBytes }: ImageRemoval): string =>
    freedOnceBytes === null || exclusiveBytes === null || exclusiveBytes === sizeBytes
      ? ""
      : humanBytes(exclusiveBytes);
  const drawn = table(
    [
      right(""),
      nameColumn("REMOVED, IN ORDER"),
      right("SIZE"),
      right("ITS OWN", 2),
      right("LAST USED", 3),
      right("FIRST SEEN", 1),
      { title: "WHY" },
      { title: "" },
    ],
    first.map((image) => ({
      cells: [
        `${image.place}`,
        imageName(image),
        humanBytes(image.sizeBytes),
        once(image),
        lastUsed(image, shown),
        firstSeen(image, shown),
        IMAGE_GOES[image.why],
        removalMarks(image),
      ],
      notes: [...removalNotes(image), ...notesAt(imagePlace(image)).map((note) => `  ${note}`)],
    })),
    columns,
    paint,
  );
  return `${drawn}${more}${tieLine(first, paint)}`;
}

/** The images that stay; those that would be removed next come first. */
function staysTable(shown: Shown<ImageGcDecision>): string {
  const { decision, columns, paint, notesAt } = shown;
  if (decision.keep.length === 0) return "";
  const inOrder = [...decision.keep].sort((a, b) => nextAt(a) - nextAt(b));
  const { first, more } = shortened(inOrder, MAX_STAY, shown, ({ why }) => IMAGE_STAYS[why]);
  dropNotes(shown, inOrder.slice(first.length).map(imagePlace));
  const drawn = table(
    [
      right(""),
      nameColumn("KEPT"),
      right("SIZE", 3),
      right("LAST USED", 2),
      right("FIRST SEEN", 1),
      { title: "WHY", shrinkTo: 24 },
    ],
    first.map((image) => ({
      cells: [
        image.place === null ? "" : `${image.place}`,
        imageName(image),
        humanBytes(image.sizeBytes),
        lastUsed(image, shown),
        firstSeen(image, shown),
        whyItStays(image, shown),
      ],
      notes: notesAt(imagePlace(image)).map((note) => `  ${note}`),
    })),
    columns,
    paint,
  );
  return `${drawn}${more}`;
}

/**
 * Sorts images that stay by when they may be removed: first those in the removal order, then those that are too
 * young, then all others.
 */
export const nextAt = ({ place, oldEnoughAtMs }: ImageKept): number =>
  place ?? oldEnoughAtMs ?? Number.MAX_SAFE_INTEGER;

function whyItStays({ why, usedBy, oldEnoughAtMs, firstDetectedAtMs }: ImageKept, shown: Shown<unknown>): string {
  const now = shown.observedAtMs;
  if (why === "too-young" && oldEnoughAtMs !== null)
    return `first seen ${agoText(firstDetectedAtMs, now)}, ${mayGoText(oldEnoughAtMs, now)}`;
  const [user, ...others] = usedBy;
  if (user === undefined) return IMAGE_STAYS[why];
  return `${IMAGE_STAYS[why]} by ${printable(user)}${others.length === 0 ? "" : " and others"}`;
}
const lastUsed = ({ lastUsedAtMs }: ImageRemoval | ImageKept, { observedAtMs }: Shown<unknown>): string =>
  lastUsedAtMs === null ? "never" : agoText(lastUsedAtMs, observedAtMs);
const firstSeen = ({ firstDetectedAtMs }: ImageRemoval | ImageKept, { observedAtMs }: Shown<unknown>): string =>
  agoText(firstDetectedAtMs, observedAtMs);

/** Images that were collected and are there again. */
function pulledAgainTable({ decision, columns, paint, observedAtMs }: Shown<ImageGcDecision>): string {
  if (decision.pulledAgain.length === 0) return "";
  return table(
    [nameColumn("PULLED AGAIN"), right("SIZE"), right("REMOVED"), right("PULLED", 1), { title: "HOW OFTEN" }],
    decision.pulledAgain.map((image: PulledAgain) => ({
      cells: [
        imageName(image),
        humanBytes(image.sizeBytes),
        agoText(image.removedAtMs, observedAtMs),
        agoText(image.againAtMs, observedAtMs),
        `removed ${timesText(image.times)}, pulled again ${timesText(image.again)}`,
      ],
    })),
    columns,
    paint,
  );
}
const timesText = (count: number): string => (count === 1 ? "once" : count === 2 ? "twice" : `${count} times`);

const WIDEST = 64;
const NARROWEST = 16;
const [STAYS, MISSING, FREED, FREE, LOW, HIGH] = ["█", "×", "▒", "·", "╎", "│"] as const;

/**
 * Draws the image file system: used space that stays, space that would be freed, space that is still missing, and the
 * thresholds.
 */
function fileSystemBar({ decision, columns, paint }: Shown<ImageGcDecision>): string {
  const { fileSystem, policy, freedBytes } = decision;
  if (fileSystem === null || fileSystem.capacityBytes <= 0) return "";
  const { lowThresholdPercent: low, highThresholdPercent: high } = policy;
  const glyphs = [
    ["cyan", STAYS, "used"],
    ["red", MISSING, "wanted, and nothing left to free"],
    ["yellow", FREED, "would be freed"],
    ["dim", FREE, "available"],
    ["bold", LOW, `low ${low} %`],
    ["bold", HIGH, `high ${high} %`],
  ] as const satisfies readonly Glyph[];
  const { stays, missing, freed, free } = sharesOf(fileSystem, freedBytes);
  const sizes = [stays, missing, freed, free];
  const width = Math.max(NARROWEST, Math.min(WIDEST, columns) - 2);
  const cells = bar(
    sizes.map((size, i) => ({ size, draw: (n: number) => (glyphs[i]?.[1] ?? "").repeat(n) })),
    width,
  );
  const marks = [
    [low, LOW],
    [high, HIGH],
  ] as const;
  const marked = withMarks(
    cells,
    marks.map(([percent, mark]) => ({ at: Math.round((percent / 100) * width), mark })),
  );
  const drawn = marked.replace(/(.)\1*/gu, (run) => paint(colorOf(glyphs, run), run));
  return `${drawn}\n${legendText(glyphs, drawn, paint)}`;
}

/**
 * The bytes of a file system: used space that stays, space that should be freed and cannot be, freed space, and free
 * space.
 */
export function sharesOf(
  { capacityBytes, availableBytes, wantedBytes }: NonNullable<ImageGcDecision["fileSystem"]>,
  freedBytes: number,
) {
  const used = Math.max(0, capacityBytes - availableBytes);
  const freed = Math.min(used, freedBytes);
  const missing = Math.min(used - freed, Math.max(0, (wantedBytes ?? 0) - freed));
  return { stays: used - freed - missing, missing, freed, free: capacityBytes - used };
}

const colorOf = (glyphs: readonly Glyph[], run: string) =>
  glyphs.find(([, glyph]) => run.startsWith(glyph))?.[0] ?? "dim";

/** Inserts each mark before the cell at its place, so that no cell is replaced. */
function withMarks(cells: string, marks: readonly { readonly at: number; readonly mark: string }[]): string {
  const all = Array.from(cells);
  return [...all, ""]
    .map((cell, i) => [...marks.filter(({ at }) => at === i).map((m) => m.mark), cell].join(""))
    .join("");
}

/**
 * Shows how full the file system is, which images are removed in which order, which stay and why, and the kubelet's
 * events.
 */
export function imageGcTable(shown: Shown<ImageGcDecision>): string {
  return sections(headOf(shown), goesTable(shown), staysTable(shown), pulledAgainTable(shown));
}

function headOf(shown: Shown<ImageGcDecision>): string {
  const { decision, paint, notesAt } = shown;
  const { events, error, remove } = decision;
  const [color, word, text] = endOf(shown);
  const freed = remove.length === 0 ? "" : `${freedText(decision)}\n`;
  // the first line says it already where nothing goes
  const failure = error === null || word === "FAILS" ? "" : paint("red", `error: ${printable(error)}\n`);
  return [
    outcome(paint, color, word, text),
    `${fileSystemText(decision)}\n`,
    fileSystemBar(shown),
    freed,
    failure,
    eventLines(events, paint, error),
    `${paint("dim", policyText(decision))}\n`,
    ...notesAt("image-gc").map((note) => `  ${note}\n`),
  ].join("");
}

function endOf({ decision, verdict }: Shown<ImageGcDecision>): [Color, string, string] {
  const { remove, error } = decision;
  const planned = remove.filter(({ end }) => end === "planned" || end === "removed");
  const size = planned.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const what = `${many(planned.length, "image")}, ${humanBytes(size)}`;
  if (verdict === "fails" || error !== null) return ["red", "FAILS", printable(error ?? what)];
  if (remove.length === 0) return ["green", "KEEPS", "no image is removed"];
  // the pass ended before it removed an image
  if (planned.length === 0) return ["yellow", "STOPPED", "no image was removed"];
  const removed = remove.filter(({ end }) => end === "removed").length;
  return ["yellow", removed === remove.length ? "REMOVED" : "REMOVES", what];
}

function fileSystemText({ fileSystem, policy, operation }: ImageGcDecision): string {
  if (fileSystem === null) {
    return operation === "delete-unused"
      ? "requested by the eviction manager: all unused images are removed, however full the file system is"
      : "the usage of the image file system is not known";
  }
  return usageText(fileSystem, policy);
}

/** How full the file system is, and how much must be freed. */
export function usageText(
  { capacityBytes, usagePercent, wantedBytes }: NonNullable<ImageGcDecision["fileSystem"]>,
  { highThresholdPercent: high, lowThresholdPercent: low }: ImageGcDecision["policy"],
): string {
  const used = `${usagePercent} % of ${humanBytes(capacityBytes)} used`;
  if (wantedBytes === null) return `${used}: below the high threshold of ${high} %, no space has to be freed`;
  if (wantedBytes <= 0)
    return `${used}, high threshold ${high} %: the low one of ${low} % is reached, and still one image is removed`;
  return `${used}, high threshold ${high} %: ${humanBytes(wantedBytes)} wanted, down to the low one of ${low} %`;
}

function freedText({ remove, freedBytes, freedOnceBytes }: ImageGcDecision): string {
  const verb = remove.every(({ end }) => end !== "planned") ? "freed" : "would free";
  // the kubelet does not count the bytes of images that are too old
  const forSpace = remove.some(({ why }) => why === "too-old") ? " for space" : "";
  const once =
    freedOnceBytes === null
      ? "; shared layers are not known"
      : `, ${humanBytes(freedOnceBytes)} with shared layers counted once`;
  return `${verb} ${humanBytes(freedBytes)}${forSpace} as the kubelet counts${once}`;
}

/** `younger than 2m stays, none is too old` */
export function policyText({ policy }: ImageGcDecision): string {
  const { minAgeMs, maxAgeMs, timer } = policy;
  const oldest = maxAgeMs === 0 ? "none is too old" : `unused for ${durationText(maxAgeMs)} is too old`;
  const runs = timer ? "" : "; the kubelet runs no timer for it (high threshold 100 %, no maximum age)";
  return `younger than ${durationText(minAgeMs)} stays, ${oldest}${runs}`;
}
