import type { ImageGcDecision, ImageKept, ImageRemoval, PulledAgain } from "../../model/image-gc.ts";
import { IMAGE_GOES, IMAGE_STAYS } from "../sentences/garbage-collection.ts";
import { humanBytes } from "../size.ts";
import { printable } from "../style.ts";
import { type Column, table } from "../table.ts";
import { agoText, mayGoText } from "./age-text.ts";
import { removalMarks, removalNotes, tieLine } from "./collection.ts";
import { imageName, imagePlace } from "./image-name.ts";
import { shortened } from "./shortened.ts";
import { type Shown, swallowNotes } from "./shown.ts";

/** The JSON, and `--explain full`, have all. */
const MOST_GO = 25;
const MOST_STAY = 10;
const right = (title: string, giveUp?: number): Column =>
  giveUp === undefined ? { title, align: "right" } : { title, align: "right", giveUp };
const nameColumn = (title: string): Column => ({ title, shrinkTo: 16, cut: "start" });

/** Images that go, in the kubelet's order. */
export function goesTable(shown: Shown<ImageGcDecision>): string {
  const { decision, columns, paint, notesAt } = shown;
  const { remove, freedOnceBytes } = decision;
  if (remove.length === 0) return "";
  const { first, more } = shortened(remove, MOST_GO, shown, ({ why }) => IMAGE_GOES[why]);
  swallowNotes(shown, remove.slice(first.length).map(imagePlace));
  const once = ({ exclusiveBytes, sizeBytes }: ImageRemoval): string =>
    freedOnceBytes === null || exclusiveBytes === null || exclusiveBytes === sizeBytes
      ? ""
      : humanBytes(exclusiveBytes);
  const drawn = table(
    [
      right(""),
      nameColumn("GOES, IN ORDER"),
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

/** Images that stay, those first that would be the next to go. */
export function staysTable(shown: Shown<ImageGcDecision>): string {
  const { decision, columns, paint, notesAt } = shown;
  if (decision.keep.length === 0) return "";
  const inOrder = [...decision.keep].sort((a, b) => nextAt(a) - nextAt(b));
  const { first, more } = shortened(inOrder, MOST_STAY, shown, ({ why }) => IMAGE_STAYS[why]);
  swallowNotes(shown, inOrder.slice(first.length).map(imagePlace));
  const drawn = table(
    [
      right(""),
      nameColumn("STAYS"),
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

/** Those of the order by their place, then those that only their age keeps by when that ends, then the others. */
const nextAt = ({ place, oldEnoughAtMs }: ImageKept): number => place ?? oldEnoughAtMs ?? Number.MAX_SAFE_INTEGER;

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
export function pulledAgainTable({ decision, columns, paint, observedAtMs }: Shown<ImageGcDecision>): string {
  if (decision.pulledAgain.length === 0) return "";
  return table(
    [nameColumn("PULLED AGAIN"), right("SIZE"), right("REMOVED"), right("BACK", 1), { title: "SO FAR" }],
    decision.pulledAgain.map((image: PulledAgain) => ({
      cells: [
        imageName(image),
        humanBytes(image.sizeBytes),
        agoText(image.removedAtMs, observedAtMs),
        agoText(image.againAtMs, observedAtMs),
        `removed ${timesText(image.times)}, back ${timesText(image.again)}`,
      ],
    })),
    columns,
    paint,
  );
}
const timesText = (count: number): string => (count === 1 ? "once" : count === 2 ? "twice" : `${count} times`);
