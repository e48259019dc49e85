import { html } from "hono/html";
import type { ImageGcDecision } from "../../model/image-gc.ts";
import { humanBytes } from "../../text/size.ts";
import { usageText } from "../../text/tables/image-gc.ts";
import { stackBar } from "../draw/stack-bar.ts";
import type { Html } from "../page.ts";
import { notKnown } from "./section.ts";

/** How full the image file system is, and what of it is wanted back. */
export function fileSystemText({ fileSystem, policy }: ImageGcDecision): string {
  if (fileSystem === null) return "The image file system was not looked at";
  const { capacityBytes, availableBytes } = fileSystem;
  const percent = (100 * (capacityBytes - availableBytes)) / capacityBytes;
  const isWhole = !Number.isFinite(percent) || Number.isInteger(percent);
  return `${usageText(fileSystem, policy)}${isWhole ? "" : `; the kubelet rounds up, the bar shows ${percent.toFixed(2)} %`}`;
}

/** The image file system: what stays, what would be freed, what is wanted beyond that, and where the thresholds are. */
export function fileSystemBar({ fileSystem, policy, freedBytes }: ImageGcDecision): Html {
  if (fileSystem === null || fileSystem.capacityBytes <= 0)
    return notKnown("Not known: how full the image file system is", ["stats.node.runtime.imageFs"]);
  const { capacityBytes, availableBytes, wantedBytes } = fileSystem;
  const { lowThresholdPercent: low, highThresholdPercent: high } = policy;
  const used = Math.max(0, capacityBytes - availableBytes);
  const freed = Math.min(used, freedBytes);
  const missing = Math.min(used - freed, Math.max(0, (wantedBytes ?? 0) - freed));
  const all = [
    ["c0", "used", used - freed - missing],
    ["bad", "wanted, and nothing there to free", missing],
    ["warn", "would be freed", freed],
    ["free", "available", capacityBytes - used],
  ] as const;
  const parts = all.filter(([, , size]) => size > 0);
  const segments = parts.map(([tone, what, size]) => ({ size, tone, words: `${humanBytes(size)} ${what}` }));
  const marks = [
    { at: low / 100, words: `low threshold ${low} %` },
    { at: high / 100, words: `high threshold ${high} %` },
  ];
  const words = [...segments, ...marks].map((part) => part.words).join(", ");
  return html`<div class="card bars">${stackBar(segments, words, marks)}
<ul class="legend">${segments.map(({ tone, words: told }) => html`<li class="${tone}">${told}</li>`)}<li class="marker">thresholds: low ${low} %, high ${high} %</li></ul></div>`;
}
