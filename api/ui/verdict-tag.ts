import { html } from "hono/html";
import { isVerdict, type Verdict } from "../model/decision.ts";
import type { Html } from "./page.ts";

const TONE: { readonly [V in Verdict]: "good" | "warn" | "bad" | "" } = {
  decided: "good",
  refused: "bad",
  "kubelet-refuses": "bad",
  calm: "good",
  "under-pressure": "warn",
  reclaims: "warn",
  evicts: "bad",
  keeps: "good",
  removes: "warn",
  fails: "bad",
  restarts: "warn",
};

/** How a decision ended, as a word in its colour. */
export const verdictTag = (verdict: string): Html | Promise<Html> =>
  html`<span class="tag ${isVerdict(verdict) ? TONE[verdict] : ""}">${verdict}</span>`;
