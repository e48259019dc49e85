import type { Snapshot } from "../model/snapshot.ts";

/** Facts about the node that a note may use. */
export interface NotedNode {
  /** The configuration with the defaults of the note's version. */
  readonly configuration: Readonly<Record<string, unknown>>;
  readonly isOn: (gate: string) => boolean;
  /** The snapshot; undefined if no node is known. */
  readonly snapshot: Snapshot | undefined;
}

export const NOTE_TOPICS = ["flag", "file", "behaviour", "event", "metric"] as const;
type NoteTopic = (typeof NOTE_TOPICS)[number];

interface NoteText {
  readonly what: string;
  /** The step before the other kubelet starts; null if there is none. */
  readonly before: string | null;
}

/** A change in a version that no gate, default, finding or decision shows. */
export interface VersionNote {
  readonly topic: NoteTopic;
  /** What the note is about: a flag, a path, a field, or a few words. */
  readonly name: string;
  /** The text for a change to this version, from an older or a newer one. */
  readonly begins: NoteText;
  /** The text for a change to an older version; absent if there is none. */
  readonly ends?: NoteText;
  /** A merge patch that does what `begins` recommends. */
  readonly patch?: unknown;
  /** Whether the note concerns a node; absent if it concerns all. */
  readonly concerns?: (node: NotedNode) => boolean;
}

/** The note about flags that a version no longer has; `flags`: their names without leading dashes. */
export const removedFlags = (name: string, flags: readonly string[]): VersionNote => ({
  topic: "flag",
  name,
  begins: {
    what: `the kubelet does not start where it is given one that it no longer knows: ${flags.map((flag) => `--${flag}`).join(", ")}`,
    before: "take them out of the kubelet's command line: its unit file, and what kubeadm wrote to kubeadm-flags.env",
  },
});
