import { html, raw } from "hono/html";
import { all, type Html } from "../page.ts";
import { fieldsOf } from "./assemble.ts";
import { EXAMPLES } from "./change.ts";
import { described, type FormView, selected, told } from "./form.ts";
import type { TextField } from "./given.ts";

const POLICIES = {
  cpuManagerPolicy: ["none", "static"],
  topologyManagerPolicy: ["none", "best-effort", "restricted", "single-numa-node"],
} as const;
/** The defaults of a KubeletConfiguration. kubelet 1.36: SetDefaults_KubeletConfiguration. */
const DEFAULTS = {
  maxPods: "110",
  imageGCHighThresholdPercent: "85",
  imageGCLowThresholdPercent: "80",
  cpuManagerPolicy: "none",
  topologyManagerPolicy: "none",
} as const;

/** The commonest fields of the configuration, which only write the patch, and the patch itself. */
export function configurationFields(view: FormView): Html | Promise<Html> {
  const { given } = view;
  const map = (name: keyof typeof EXAMPLES) =>
    input(
      name,
      view,
      nowText(mapText(now(view, name))) ?? `such as ${EXAMPLES[name]}`,
      name === "evictionHard" ? "wi-wide" : "",
    );
  const count = (name: keyof typeof DEFAULTS & TextField) =>
    input(name, view, `${nowText(String(now(view, name) ?? "")) ?? `${DEFAULTS[name]} by default`}`, "");
  return html`<div class="wi-fields">${map("kubeReserved")}${map("systemReserved")}${map("evictionHard")}
${count("maxPods")}${policy("cpuManagerPolicy", view)}${policy("topologyManagerPolicy", view)}
${count("imageGCHighThresholdPercent")}${count("imageGCLowThresholdPercent")}</div>
<label class="wi-label">KubeletConfiguration, YAML or JSON${told("change", view)}<textarea class="wi-input wi-text" name="change" spellcheck="false" rows="7" placeholder="maxPods: 60
evictionHard: {memory.available: 1Gi}"${described("change", view)}>
${given.change}</textarea></label>
<div class="wi-row" role="radiogroup" aria-label="How the configuration counts">
<label class="inline"><input type="radio" name="as" value="patch"${given.as === "whole" ? "" : raw(" checked")}> changes these fields (null removes one)</label>
<label class="inline"><input type="radio" name="as" value="whole"${given.as === "whole" ? raw(" checked") : ""}> is the whole configuration</label></div>`;
}

/** What the field is now. */
function now({ configuration }: FormView, name: string): unknown {
  const all = fieldsOf(configuration);
  return fieldsOf(all["kubeletconfig"] ?? all)[name];
}
const nowText = (text: string): string | null => (text === "" ? null : `now ${text}`);
const mapText = (value: unknown): string =>
  Object.entries(fieldsOf(value))
    .map(([name, amount]) => `${name}=${String(amount)}`)
    .join(", ");

const input = (name: TextField, view: FormView, placeholder: string, kind: string): Html | Promise<Html> =>
  html`<label class="wi-label ${kind}">${name}${told(name, view)}<input class="wi-input" name="${name}" value="${view.given[name]}" placeholder="${placeholder}" autocomplete="off"${described(name, view)}></label>`;

function policy(name: keyof typeof POLICIES, view: FormView): Html | Promise<Html> {
  const known = String(now(view, name) ?? DEFAULTS[name]);
  const options = POLICIES[name].map(
    (value) => html`<option value="${value}"${selected(value === view.given[name])}>${value}</option>`,
  );
  return html`<label class="wi-label">${name}<select class="wi-input" name="${name}"><option value="">now ${known}</option>${all(options)}</select></label>`;
}
