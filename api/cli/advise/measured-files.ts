import { type Fields, fieldsOf } from "../../base/own.ts";
import { ok, type Result } from "../../base/result.ts";
import { type DocumentForm, formOf, formText } from "../../documents/document-form.ts";
import { type InputDocument, issueText, type Origin } from "../../documents/inputs/origin.ts";
import { decodeSnapshot } from "../../model/decode.ts";
import { configurationPath } from "../../model/kubelet-configuration.ts";
import type { Snapshot } from "../../model/snapshot.ts";
import { chooseProfileFor } from "../../profiles/index.ts";
import type { Profile } from "../../profiles/profile.ts";
import { type Measurement, measurementIn } from "../../service/advise/measurement.ts";
import { listed } from "../../text/sentences/words.ts";
import { leftOutOf, readDocuments } from "../inputs/read.ts";
import { READ_ONCE, readsOnce } from "../inputs/snapshot.ts";
import { EXIT, type Fault, fault } from "../terminal.ts";

interface MeasuredFiles {
  readonly measurements: readonly Measurement[];
  readonly withoutStats: number;
  readonly everyMs: null;
  /** The node, from the newest of the files. */
  readonly snapshot: Snapshot;
  readonly profile: Profile;
  /** The lines about ignored fields of the configuration. */
  readonly notices: readonly string[];
}

const FORMS = ["/stats/summary", "snapshot", "v1.Node", "KubeletConfiguration", "/configz", "machine"] as const;
type Form = (typeof FORMS)[number];
const isForm = (form: DocumentForm | undefined): form is Form => (FORMS as readonly unknown[]).includes(form);
/** The member of a snapshot for each form of document. */
const MEMBER: Readonly<Record<Exclude<Form, "snapshot">, string>> = {
  "/stats/summary": "stats",
  "v1.Node": "node",
  KubeletConfiguration: "kubeletConfiguration",
  "/configz": "kubeletConfiguration",
  machine: "machine",
};

interface MeasuredFile {
  readonly form: Form;
  readonly source: InputDocument;
}

/**
 * Reads files with any number of measurements, recognised by their content. Errors: file, line and path; files of several nodes;
 * duplicates of single documents.
 */
export async function readMeasured(
  paths: readonly string[],
  kubelet: string | undefined,
): Promise<Result<MeasuredFiles, Fault>> {
  if (!readsOnce(paths)) return fault(EXIT.badInput, READ_ONCE);
  const measuredFiles: MeasuredFile[] = [];
  for (const path of paths) {
    const documents = await readDocuments(path);
    if (!documents.ok) return documents;
    for (const source of documents.value) {
      const form = formOf(source.value);
      if (!isForm(form))
        return fault(
          EXIT.badInput,
          `${source.file}: is ${formText(source.value)}, and advise reserves accepts answers of /stats/summary, NodeSnapshots, a v1.Node, a KubeletConfiguration and a machine`,
        );
      measuredFiles.push({ form, source });
    }
  }
  const nodes = new Set(measuredFiles.flatMap(nodeOf));
  if (nodes.size > 1)
    return fault(EXIT.badInput, `the files are of the nodes ${listed([...nodes].sort())}: give those of one`);
  const twin = duplicateFault(measuredFiles);
  if (twin !== undefined) return fault(EXIT.badInput, twin);
  return assembled(measuredFiles, kubelet);
}

/** Measures a node of a live cluster. */
export const measuredNow = (
  name: string,
  snapshot: Fields,
  kubelet: string | undefined,
): Result<MeasuredFiles, Fault> =>
  assembled([{ form: "snapshot", source: { ...NO_FILE, file: `node ${name}`, value: snapshot } }], kubelet);
const NO_FILE = { document: 0, hasPlaces: false, place: () => ({ line: 1, column: 1 }) };

function nodeOf({ form, source: { value } }: MeasuredFile): readonly string[] {
  const { node, metadata } = fieldsOf(value);
  const name =
    form === "/stats/summary"
      ? fieldsOf(node)["nodeName"]
      : fieldsOf(form === "snapshot" ? fieldsOf(node)["metadata"] : form === "v1.Node" ? metadata : undefined)["name"];
  return typeof name === "string" && name !== "" ? [name] : [];
}

/** The message about two files of a document that a node has only once. */
function duplicateFault(measuredFiles: readonly MeasuredFile[]): string | undefined {
  const seen = new Map<string, string>();
  for (const { form, source } of measuredFiles) {
    if (form === "/stats/summary" || form === "snapshot") continue;
    const member = MEMBER[form];
    const other = seen.get(member);
    if (other !== undefined)
      return `${source.file}: is ${formText(source.value)}, and ${other} has the ${member} already`;
    seen.set(member, source.file);
  }
  return undefined;
}

function assembled(measuredFiles: readonly MeasuredFile[], kubelet: string | undefined): Result<MeasuredFiles, Fault> {
  const measurements: {
    readonly measured: Measurement;
    readonly input: Fields;
    readonly origins: readonly Origin[];
  }[] = [];
  let withoutStats = 0;
  for (const { form, source } of measuredFiles) {
    if (form !== "/stats/summary" && form !== "snapshot") continue;
    const input = form === "snapshot" ? fieldsOf(source.value) : { stats: source.value };
    const origins = [{ at: form === "snapshot" ? [] : ["stats"], source, base: [] }];
    const decoded = decodeSnapshot(input);
    if (!decoded.ok) return fault(EXIT.badInput, ...decoded.error.map((issue) => issueText(issue, origins)));
    const measured = measurementIn(decoded.value);
    if (measured === null) withoutStats++;
    else measurements.push({ measured, input, origins });
  }
  const [newest] = measurements.sort((a, b) => (b.measured.atMs ?? 0) - (a.measured.atMs ?? 0));
  const input: Record<string, unknown> = { ...newest?.input };
  const origins: Origin[] = [...(newest?.origins ?? [])];
  for (const { form, source } of measuredFiles) {
    if (form === "/stats/summary" || form === "snapshot") continue;
    input[MEMBER[form]] = source.value;
    origins.push({ at: [MEMBER[form]], source, base: form === "/configz" ? configurationPath(source.value) : [] });
  }
  const snapshot = decodeSnapshot(input);
  if (!snapshot.ok) return fault(EXIT.badInput, ...snapshot.error.map((issue) => issueText(issue, origins)));
  const { profile } = chooseProfileFor(snapshot.value, kubelet);
  const config = measuredFiles.find(({ form }) => form === "KubeletConfiguration")?.source;
  return ok({
    measurements: measurements.map(({ measured }) => measured),
    withoutStats,
    everyMs: null,
    snapshot: snapshot.value,
    profile,
    notices: config === undefined ? [] : leftOutOf(config, [], config.value, profile),
  });
}
