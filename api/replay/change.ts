import { mergePatch } from "../model/merge-patch.ts";

/** What is changed of a recorded input before it is decided again. Neither: nothing. */
export interface Change {
  /** In the place of the whole recorded one; `undefined` keeps that. */
  readonly kubeletConfiguration?: unknown;
  /** Onto the recorded one, a merge patch of RFC 7396; `undefined` changes nothing. */
  readonly kubeletConfigurationPatch?: unknown;
}

/** What was recorded is decided as it was. */
export const isNothing = ({ kubeletConfiguration, kubeletConfigurationPatch }: Change): boolean =>
  kubeletConfiguration === undefined && kubeletConfigurationPatch === undefined;

export interface RecordedInput {
  readonly kubeletConfiguration?: unknown;
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** A snapshot as stored -> the same with the configuration that is asked about. */
export function changed(input: RecordedInput, change: Change): RecordedInput {
  const { kubeletConfiguration = input.kubeletConfiguration, kubeletConfigurationPatch } = change;
  if (!isObject(kubeletConfigurationPatch)) return { ...input, kubeletConfiguration };
  // as /configz has it; merged, it would take the place of the whole
  const patch = kubeletConfigurationPatch["kubeletconfig"] ?? kubeletConfigurationPatch;
  return { ...input, kubeletConfiguration: mergePatch(input.kubeletConfiguration, patch) };
}
