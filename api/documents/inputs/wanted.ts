import { configurationPath } from "../../model/kubelet-configuration.ts";
import { type DocumentForm, formOf, formText, hasForm, isConfiguration } from "../document-form.ts";
import { PARTS, type PartOption } from "./parts.ts";

/** The forms that an option takes; pods are told by their own reader, a configuration may be any subset. */
const TAKES: Readonly<Record<Exclude<PartOption, "pods">, readonly DocumentForm[]>> = {
  node: ["v1.Node"],
  config: ["KubeletConfiguration", "/configz"],
  stats: ["/stats/summary"],
  machine: ["machine"],
  "cpu-manager-state": ["cpu_manager_state"],
  "memory-manager-state": ["memory_manager_state"],
  "allocated-pods": ["allocated_pods_state"],
  "device-checkpoint": ["kubelet_internal_checkpoint"],
  devices: ["devices"],
  "device-plugins": ["devicePlugins"],
  images: ["crictl images"],
  containers: ["crictl ps"],
  sandboxes: ["crictl pods"],
  imagefs: ["crictl imagefsinfo"],
};

/** Why a document is nothing for an option: what it is, what was wanted, and which option takes it. `undefined` where it fits. */
export function misplaced(value: unknown, option: Exclude<PartOption, "pods">): string | undefined {
  const fits = option === "config" ? isConfiguration(value) : TAKES[option].some((form) => hasForm(value, form));
  if (fits || (option === "sandboxes" && isEmptyList(value))) return undefined;
  const wanted = PARTS.find((part) => part.option === option)?.what;
  return `is ${formText(value)}, and --${option} takes ${wanted}${otherOption(value)}`;
}

/** Checks for an empty list that does not say what it lists. */
const isEmptyList = (value: unknown): boolean => {
  const { kind, items } = (value ?? {}) as { kind?: unknown; items?: unknown };
  return kind === undefined && Array.isArray(items) && items.length === 0;
};

/** The forms to give in the place of forms that no option takes since they describe one thing only. */
export const INSTEAD: Partial<Record<DocumentForm, string>> = {
  "crictl inspect": "give what `crictl ps -a -o json` prints",
  "crictl inspectp": "give what `crictl pods -o json` prints",
  "crictl inspecti": "give what `crictl images -o json` prints",
  "crictl info":
    "leave it out, no decision reads it; `crictl ps -a -o json`, `crictl pods -o json` and `crictl images -o json` tell what runs and what is there",
};

/** `: give it with --stats`, where an option takes such a document; what to give instead, where none does. */
export function otherOption(value: unknown): string {
  const form = formOf(value);
  if (form === "snapshot") return ": give it with --snapshot";
  const { kind } = (value ?? {}) as { kind?: unknown };
  if (form === "v1.Pod" || (form === "list" && kind !== "NodeList")) return ": give it with --pods";
  if (form === "list") return ": give it with --node";
  if (form === undefined) return "";
  const option = optionOfForm(form);
  if (option !== undefined) return `: give it with --${option}`;
  const instead = INSTEAD[form];
  return instead === undefined ? "" : `: ${instead}`;
}

/** The option that takes documents of a form; `undefined` for pods, lists and whole snapshots, which are told by their own readers. */
export const optionOfForm = (form: DocumentForm): Exclude<PartOption, "pods"> | undefined =>
  (Object.keys(TAKES) as Exclude<PartOption, "pods">[]).find((option) => TAKES[option].includes(form));

/** Where a document of an option holds what the snapshot takes: as the kubelet and crictl wrap it. */
export function wrapperOf(option: PartOption, value: unknown): readonly string[] {
  if (option === "config") return configurationPath(value);
  const key = WRAPPED[option];
  return key !== undefined && Object.hasOwn(value as object, key) ? [key] : [];
}
/** Where crictl puts what it lists. */
const WRAPPED: Partial<Record<PartOption, string>> = {
  images: "images",
  containers: "containers",
  sandboxes: "items",
  imagefs: "status",
};
