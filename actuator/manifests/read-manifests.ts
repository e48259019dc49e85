import { readdir, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { LIMITS } from "../../api/base/limits.ts";
import { parseDocuments } from "../../api/documents/parse.ts";
import type { ProblemCode, ReadProblem, RefusedItem } from "../../api/documents/problem.ts";
import type { ActivePods, NodeClaims } from "../core/interfaces.ts";
import { readText, reasonOf } from "../core/read-text.ts";
import { refusedItemOf } from "../lifecycle/refused-item.ts";
import { claimsOf, type FoundClaim, isOfClaims, joinClaims } from "./claims-of.ts";
import { type FoundPod, type PodObject, podsOf } from "./pods-of.ts";

export interface Manifests {
  /** The pods in the order of file names and of their places in a file. */
  readonly pods: readonly PodObject[];
  /** The pods with their places. */
  readonly found: readonly FoundPod[];
  /** Omitted objects, and why. */
  readonly problems: readonly ReadProblem[];
  readonly claims: NodeClaims;
  /** Files that cannot be read completely now; their last good version stays in force. */
  readonly kept: readonly string[];
}

interface FoundObjects {
  readonly found: readonly FoundPod[];
  readonly claims: readonly FoundClaim[];
}
interface FileRead extends FoundObjects {
  readonly problems: readonly ReadProblem[];
}
interface KnownFile {
  /** The stamp of the file as it was read; null: it may have changed since without showing it. */
  readonly stamp: string | null;
  readonly read: FileRead;
  /** The content of its last good version; null: there was none. */
  readonly good: FoundObjects | null;
}
/** The pods of each file and of its last good version; a caller that reads repeatedly keeps one map. */
export type LastGood = Map<string, KnownFile>;

const MAX_FILE_BYTES = 1024 * 1024;
const MAX_FILES = 2048;
/** Good and bad objects together; a directory with more is not read to its end. */
const MAX_OBJECTS = 2048;

/**
 * The static pods of a directory (or of one file), with the claims beside them, as the kubelet's file source reads them (kubelet 1.36:
 * extractFromDir): files in the order of their names, without hidden ones and subdirectories. Unlike the
 * kubelet it accepts several documents per file, and lists. Bounds: 1 MiB a file, 2048 files, 512 pods. Never rejects: each
 * refusal is a problem with file, document and place, and the rest is read. A file in `lastGood` that is
 * broken now counts as before; the kubelet keeps such a pod until it lists the directory again (consumeWatchEvent).
 * `inForce`: which of two pods with one name counts.
 */
export async function readManifests(
  path: string,
  nodeName: string,
  lastGood: LastGood = new Map(),
  inForce?: ActivePods,
): Promise<Manifests> {
  const { files, problems } = await filesAt(resolve(path));
  const found: FoundPod[] = [];
  const claims: FoundClaim[] = [];
  const kept: string[] = [];
  for (const file of files) {
    if (found.length + claims.length + problems.length >= MAX_OBJECTS) {
      problems.push({ code: "too-many", file, message: `is not read: ${MAX_OBJECTS} objects came before it` });
      break;
    }
    const { read, good } = await readAgain(file, nodeName, lastGood);
    if (good !== null && read.problems.length > 0) kept.push(file);
    found.push(...(good ?? read).found);
    claims.push(...(good ?? read).claims);
    problems.push(...read.problems);
  }
  forgetRemovedFiles(lastGood, files, problems);
  const distinct = distinctPods(found, inForce);
  const pods = distinct.found.map(({ pod }) => pod);
  const joined = joinClaims(claims);
  const all = [...problems, ...distinct.problems, ...joined.problems];
  return { pods, found: distinct.found, claims: joined.claims, problems: all, kept };
}

/** Forgets the pods of removed files; an unreadable file counts as present. */
function forgetRemovedFiles(lastGood: LastGood, files: readonly string[], problems: readonly ReadProblem[]): void {
  const there = new Set([...files, ...problems.map(({ file }) => file)]);
  for (const file of lastGood.keys()) {
    if (!there.has(file) && !there.has(dirname(file))) lastGood.delete(file);
  }
}

/** A file that shows no change is not parsed again. */
async function readAgain(file: string, nodeName: string, lastGood: LastGood): Promise<KnownFile> {
  const before = lastGood.get(file);
  const stamp = await stampOf(file);
  if (before !== undefined && stamp !== null && stamp === before.stamp) return before;
  const read = await readFile(file, nodeName);
  const isSame = stamp !== null && stamp === (await stampOf(file));
  const good = read.problems.length === 0 ? read : (before?.good ?? null);
  const known: KnownFile = { stamp: isSame ? stamp : null, read, good };
  lastGood.set(file, known);
  return known;
}

/** Coarser file systems show two changes of one moment as one. */
const RECENT_MS = 2_000;
/** The file's version; null: it was changed just now, so a further change might not be visible. */
async function stampOf(file: string): Promise<string | null> {
  const found = await stat(file, { bigint: true }).catch(() => null);
  if (found === null || Math.abs(Date.now() - Number(found.ctimeMs)) < RECENT_MS) return null;
  return `${found.dev} ${found.ino} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`;
}

const EMPTY = "holds no object: expected JSON or YAML; to end its pods remove the file";
/**
 * Reads a file; one without any object is a fault: while a file is being overwritten it is empty for a moment, and
 * what the previous daemon read in it is not known.
 */
async function readFile(file: string, nodeName: string): Promise<FileRead> {
  const text = await readText(file, file, MAX_FILE_BYTES);
  if (!text.ok) return { found: [], claims: [], problems: [text.error] };
  const { documents, problems } = parseDocuments(text.value, file);
  const found: FoundPod[] = [];
  const claims: FoundClaim[] = [];
  const refused = [...problems];
  for (const source of documents) {
    for (const pod of podsOf(source, nodeName, isOfClaims)) {
      if (pod.ok) found.push(pod.value);
      else refused.push(pod.error);
    }
    for (const claim of claimsOf(source)) {
      if (claim.ok) claims.push(claim.value);
      else refused.push(claim.error);
    }
  }
  if (documents.length + problems.length === 0) refused.push({ code: "malformed", file, message: EMPTY });
  return { found, claims, problems: refused };
}

async function filesAt(path: string): Promise<{ files: readonly string[]; problems: ReadProblem[] }> {
  try {
    if ((await stat(path)).isFile()) return { files: [path], problems: [] };
    return await filesIn(path);
  } catch (error) {
    const [code, message] = reasonOf(error as NodeJS.ErrnoException);
    return { files: [], problems: [{ code, file: path, message }] };
  }
}

async function filesIn(directory: string): Promise<{ files: readonly string[]; problems: ReadProblem[] }> {
  const listed = (await readdir(directory, { withFileTypes: true })).filter(({ name }) => !name.startsWith("."));
  const names = listed.map(({ name }) => name).sort();
  const plain = new Set(listed.filter((entry) => entry.isFile()).map(({ name }) => name));
  const problems: ReadProblem[] = [];
  if (names.length > MAX_FILES) {
    const message = `holds ${names.length} files, of which the first ${MAX_FILES} are read: remove the others`;
    problems.push({ code: "too-many", file: directory, message });
  }
  const files: string[] = [];
  for (const name of names.slice(0, MAX_FILES)) {
    const file = join(directory, name);
    if (plain.has(name)) {
      files.push(file);
      continue;
    }
    const found = await stat(file).catch((error: NodeJS.ErrnoException) => error);
    if (found instanceof Error) problems.push({ code: reasonOf(found)[0], file, message: reasonOf(found)[1] });
    else if (found.isFile()) files.push(file);
    else {
      const what = found.isDirectory() ? "is a directory" : "is no regular file";
      problems.push({ code: "not-a-file", file, message: `${what}: skipped, as manifests are read only from files` });
    }
  }
  return { files, problems };
}

/**
 * Pods with the same namespace and name, or with the same uid, would own the same cgroup: the one in force counts, then its
 * next version in the same file, then the first. At most `LIMITS.pods`. Omitted pods are problems. kubelet 1.36:
 * allowStaticPodStart.
 */
function distinctPods(
  found: readonly FoundPod[],
  inForce: ActivePods = new Map(),
): { found: readonly FoundPod[]; problems: readonly ReadProblem[] } {
  const problems: ReadProblem[] = [];
  const leaveOut = ({ pod, source }: FoundPod, code: ProblemCode, message: string, item?: RefusedItem): void => {
    const { file, document } = source;
    const problem = { code, file, document, place: source.place([]), message: `pod ${keyOf(pod)} ${message}` };
    problems.push(item === undefined ? problem : { ...problem, item });
  };
  const rank = ({ pod, source }: FoundPod): number => {
    const known = inForce.get(keyOf(pod));
    return known?.uid === pod.metadata["uid"] ? 0 : known?.file === source.file ? 1 : 2;
  };
  const names = new Map<string, FoundPod>();
  const owners = new Map<unknown, FoundPod>();
  for (const one of found.toSorted((a, b) => rank(a) - rank(b))) {
    const uid = one.pod.metadata["uid"];
    const twin = names.get(keyOf(one.pod));
    const owner = owners.get(uid);
    if (twin !== undefined) leaveOut(one, "duplicate", `is also in ${twin.source.file}, which counts: rename one`);
    else if (owner !== undefined) {
      // the running pod with this name does not end because another pod has its uid
      const item = { ...refusedItemOf(one.pod), deletion: null, owner: keyOf(owner.pod) };
      leaveOut(one, "duplicate", `has the uid of pod ${item.owner}, \`${uid}\`: remove the uid`, item);
    } else if (owners.size === LIMITS.pods)
      leaveOut(one, "too-many", `is beyond the ${LIMITS.pods} pods of a node: remove some`);
    else {
      names.set(keyOf(one.pod), one);
      owners.set(uid, one);
    }
  }
  const counting = new Set(owners.values());
  return { found: found.filter((one) => counting.has(one)), problems };
}

const keyOf = ({ metadata }: PodObject): string => `${String(metadata["namespace"])}/${metadata.name}`;
