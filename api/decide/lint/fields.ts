import { joinPath } from "../../model/input-issue.ts";
import { unknownFields } from "../../model/kubelet-unknown-fields.ts";
import { error, type LintFinding, note } from "./finding.ts";
import type { LintInput } from "./input.ts";

/** Fields that the kubelet still takes and no longer reads. kubelet 1.36: config/v1beta1. */
const IDLE_FIELDS: readonly string[] = ["iptablesDropBit", "iptablesMasqueradeBit", "streamingConnectionIdleTimeout"];
/** With these values a /configz or a file of kubeadm holds them. */
const USUAL: Readonly<Record<string, readonly unknown[]>> = {
  iptablesDropBit: [15],
  iptablesMasqueradeBit: [14],
  streamingConnectionIdleTimeout: ["4h0m0s", "4h", "0s"],
};

/** Fields that a kubelet does not know, which it logs and leaves out, and those that do nothing. */
export function fieldFindings({ given }: LintInput, isOfKubelet: boolean): readonly LintFinding[] {
  // what a kubelet itself tells of its configuration has the fields of its version
  const unknown = isOfKubelet ? [] : unknownFields(given.raw);
  const deprecated = IDLE_FIELDS.filter((name) => given.has(name) && !USUAL[name]?.includes(given.raw[name]));
  return [
    ...unknown.map(({ path, fault, near }): LintFinding => {
      const found = error({
        code: "unknown-field",
        field: joinPath("", path),
        message: fault,
        advice:
          near === null
            ? "the kubelet logs it and leaves it out: take it out"
            : `the kubelet logs it and leaves it out; was \`${near}\` meant?`,
        fix: path.every((step) => typeof step === "string")
          ? patched(path as readonly string[], near, given.raw)
          : null,
      });
      return { ...found, kubelet: true };
    }),
    ...deprecated.map((field) => {
      const message = `${field} has no effect any more`;
      return note({ code: "deprecated-field", field, message, advice: "take it out", fix: { [field]: null } });
    }),
  ];
}

/** Takes the field away, and gives its value to the one that was meant, if that is not there. */
function patched(path: readonly string[], near: string | null, raw: unknown): unknown {
  const [name = "", ...rest] = path;
  const at = (raw ?? {}) as Readonly<Record<string, unknown>>;
  if (rest.length > 0) return { [name]: patched(rest, near, at[name]) };
  return near === null || at[near] !== undefined ? { [name]: null } : { [name]: null, [near]: at[name] };
}
