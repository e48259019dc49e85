import type { ImageGcDecision, ImageKept, ImageRef, ImageRemoval } from "../../model/image-gc.ts";
import { passTimeOf } from "../../model/pass-time.ts";
import { IMAGE_GOES, IMAGE_STAYS } from "../../text/sentences/garbage-collection.ts";
import { many } from "../../text/sentences/words.ts";
import { humanBytes } from "../../text/size.ts";
import { imageName, nextAt, policyText, sharesOf, usageText } from "../../text/tables/image-gc.ts";
import { agoText, mayGoText } from "../../text/time-text.ts";
import { stackBar } from "../draw/bars.ts";
import { html, titled } from "../html.ts";
import type { Html } from "../page.ts";
import { LISTS, type ListView } from "./lists.ts";
import { type DecidedSnapshot, folded, type NodeView, notKnown, scrolling, undecided } from "./view.ts";

/** Images in the order in which they would go, with the line between those that go and those that stay. */
export function imagesSection({ snapshot }: DecidedSnapshot, answer: NodeView["imageGc"], lists: ListView): Html {
  if (answer === null) return html``;
  if (!answer.ok) return undecided("images", "Images", answer.error);
  const { decision } = answer.value;
  const { remove, keep, error } = decision;
  const now = passTimeOf(snapshot)?.atMs;
  const total = [...remove, ...keep].reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return folded(
    "images",
    "Images by size and age",
    html`<p>${many(remove.length + keep.length, "image")}, ${humanBytes(total)} as the runtime counts. ${fileSystemText(decision)}.</p>
${error === null ? "" : html`<p class="note bad">${error}</p>`}
${fileSystemBar(decision)}
<p class="small soft">${titled(policyText(decision))}.</p>
${remove.length + keep.length === 0 ? html`<p class="soft">The runtime lists no image.</p>` : list(decision, now, lists)}`,
    lists.asked !== null,
  );
}

/** The first images to be removed and the first to stay, or the requested page of all. */
function list({ remove, keep, freedBytes }: ImageGcDecision, now: number | undefined, lists: ListView): Html {
  const { few } = LISTS.images;
  const total = remove.length + keep.length;
  const isAsked = lists.isAsked("images");
  const shown = Math.min(few, remove.length) + Math.min(few, keep.length);
  const { from, to, note } = lists.span("images", total, "", shown);
  const stay = keep.toSorted((a, b) => nextAt(a) - nextAt(b) || b.sizeBytes - a.sizeBytes);
  const goes = remove.slice(from, isAsked ? to : few);
  const stays = stay.slice(Math.max(0, from - remove.length), isAsked ? Math.max(0, to - remove.length) : few);
  const most = [...goes, ...stays].reduce((size, image) => Math.max(size, image.sizeBytes), 0);
  const left = remove.length - goes.length;
  const more = isAsked || left === 0 ? "" : lineOf(`${many(left, "other")} would be removed`, "soft");
  const drawn = html`<table class="images"><thead><tr><th class="num">Place</th><th>Image</th><th colspan="2">Size</th><th>Last used</th><th>First seen</th><th>Why</th></tr></thead>
<tbody>${goes.map((image) => goesRow(image, most, now))}${more}
${lineBetween({ remove, goes, stays, freedBytes })}
${stays.map((image) => staysRow(image, most, now))}</tbody></table>`;
  return html`${scrolling("Images in the order in which they would be removed", drawn)}${note}`;
}

interface RemovedAndKept extends Pick<ImageGcDecision, "remove" | "freedBytes"> {
  readonly goes: readonly ImageRemoval[];
  readonly stays: readonly ImageKept[];
}
/** If a page has only one side, the line that names it. */
function lineBetween({ remove, freedBytes, goes, stays }: RemovedAndKept): Html {
  if (remove.length === 0) return lineOf("Nothing would be removed: all below is kept", "line");
  const goesText = `would be removed (${humanBytes(freedBytes)} for space${goes.length < remove.length ? ", with those not shown" : ""})`;
  if (stays.length === 0) return lineOf(`What is above ${goesText}`, "line");
  if (goes.length === 0) return lineOf("What is below is kept", "line");
  return lineOf(`What is above ${goesText}, what is below is kept`, "line");
}
const lineOf = (text: string, tone: string): Html => html`<tr class="${tone}"><td colspan="7">${text}</td></tr>`;

function goesRow(image: ImageRemoval, most: number, now: number | undefined): Html {
  const why = html`<span class="tag warn">${IMAGE_GOES[image.why]}</span>${image.tie ? " tied with another: their order is random" : ""}`;
  return row(image, `${image.place}`, "warn", why, most, now);
}

function staysRow(image: ImageKept, most: number, now: number | undefined): Html {
  const place = image.place === null ? "" : `${image.place}`;
  return row(image, place, "c0", html`${whyItStays(image, now)}`, most, now);
}

function whyItStays({ why, usedBy, oldEnoughAtMs }: ImageKept, now: number | undefined): string {
  if (why === "too-young" && oldEnoughAtMs !== null) return `${IMAGE_STAYS[why]}, ${mayGoText(oldEnoughAtMs, now)}`;
  const [user, ...others] = usedBy;
  if (user === undefined) return IMAGE_STAYS[why];
  return `${IMAGE_STAYS[why]} by ${user}${others.length === 0 ? "" : ` and ${many(others.length, "other")}`}`;
}

function row(image: ImageRef, place: string, tone: string, why: Html, most: number, now: number | undefined): Html {
  const { sizeBytes, lastUsedAtMs, firstDetectedAtMs } = image;
  const size = humanBytes(sizeBytes);
  const used = lastUsedAtMs === null ? "never" : agoText(lastUsedAtMs, now);
  const parts = [
    { size: sizeBytes, tone, words: size },
    { size: most - sizeBytes, tone: "none", words: "" },
  ];
  return html`<tr><td class="num soft">${place}</td><td class="image">${imageName(image)}</td><td class="num">${size}</td><td class="size">${stackBar(parts, size)}</td><td>${used}</td><td>${agoText(firstDetectedAtMs, now)}</td><td>${why}</td></tr>`;
}

/** The usage of the image file system, and how much is to be freed. */
function fileSystemText({ fileSystem, policy }: ImageGcDecision): string {
  if (fileSystem === null) return "The usage of the image file system is not known";
  const { capacityBytes, availableBytes } = fileSystem;
  const percent = (100 * (capacityBytes - availableBytes)) / capacityBytes;
  const isWhole = !Number.isFinite(percent) || Number.isInteger(percent);
  return `${usageText(fileSystem, policy)}${isWhole ? "" : `; the kubelet rounds up, the bar shows ${percent.toFixed(2)} %`}`;
}

/** The image file system: what stays, what would be freed, what is wanted beyond that, and the thresholds. */
function fileSystemBar({ fileSystem, policy, freedBytes }: ImageGcDecision): Html {
  if (fileSystem === null || fileSystem.capacityBytes <= 0)
    return notKnown("Not known: how full the image file system is", ["stats.node.runtime.imageFs"]);
  const { lowThresholdPercent: low, highThresholdPercent: high } = policy;
  const { stays, missing, freed, free } = sharesOf(fileSystem, freedBytes);
  const all = [
    ["c0", "used", stays],
    ["bad", "wanted, and nothing left to free", missing],
    ["warn", "would be freed", freed],
    ["free", "available", free],
  ] as const;
  const parts = all.filter(([, , size]) => size > 0);
  const segments = parts.map(([tone, what, size]) => ({ size, tone, words: `${humanBytes(size)} ${what}` }));
  const marks = [
    { at: low / 100, words: `low threshold ${low} %` },
    { at: high / 100, words: `high threshold ${high} %` },
  ];
  const words = [...segments, ...marks].map((part) => part.words).join(", ");
  return html`<div class="card bars">${stackBar(segments, words, marks)}
<ul class="legend">${segments.map(({ tone, words: label }) => html`<li class="${tone}">${label}</li>`)}<li class="marker">thresholds: low ${low} %, high ${high} %</li></ul></div>`;
}
