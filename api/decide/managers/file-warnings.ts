import type { EffectiveSnapshot } from "../../profiles/effective.ts";
import { type CheckpointV2, hashedV2 } from "../cpus/checkpoint.ts";
import { fnv1a } from "../go/json.ts";

type Loose = Readonly<Record<string, unknown>>;
const parsed = (text: string | undefined): Loose | undefined => {
  try {
    const value = JSON.parse(text ?? "") as unknown;
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Loose) : undefined;
  } catch {
    return undefined;
  }
};

/**
 * Warnings about old versions and missing or wrong checksums, even if the kubelet does not report them. A file whose
 * `data` the kubelet reads gives none: a fault in it keeps the kubelet from starting, and the kubelet ignores the
 * rest.
 */
export function fileWarnings({ assignments = {}, kubeletConfiguration }: EffectiveSnapshot): readonly string[] {
  const { stateFiles } = kubeletConfiguration.profile.behaviour;
  const warnings: string[] = [];
  const olderForm = (text: string | undefined): Loose | undefined => {
    const state = parsed(text);
    return stateFiles === "data" && (state?.["data"] || state?.["dataChecksum"]) ? undefined : state;
  };
  const cpus = olderForm(assignments.cpu_manager_state);
  const memory = stateFiles === "containers" ? undefined : olderForm(assignments.memory_manager_state);
  for (const [file, state] of Object.entries({ cpu_manager_state: cpus, memory_manager_state: memory })) {
    if (state !== undefined && (state["checksum"] ?? 0) === 0) {
      warnings.push(`${file}: it has no checksum, and the kubelet takes it as it is`);
    }
  }
  const entries = Object.entries((cpus?.["entries"] ?? {}) as Loose);
  const isV1 = entries.some(([, of]) => typeof of === "string");
  if (isV1 && stateFiles !== "data") {
    warnings.push(
      "cpu_manager_state: version 1, which knows containers by their ids; the kubelet writes it anew as version 2",
    );
  } else if (!isV1 && cpus !== undefined && typeof cpus["checksum"] === "number" && cpus["checksum"] !== 0) {
    const actual = fnv1a(hashedV2(fieldsOf(cpus, entries)));
    if (actual !== cpus["checksum"] && cpus["podEntries"] === undefined) {
      warnings.push(`cpu_manager_state: its checksum is ${cpus["checksum"]}, its content gives ${actual}`);
    }
  }
  return warnings;
}

const fieldsOf = (file: Loose, entries: readonly (readonly [string, unknown])[]): CheckpointV2 => ({
  policyName: String(file["policyName"] ?? ""),
  defaultCpuSet: String(file["defaultCpuSet"] ?? ""),
  entries: new Map(
    entries.map(([uid, of]) => [uid, new Map(Object.entries((of ?? {}) as Loose).map(([c, v]) => [c, String(v)]))]),
  ),
});
