import { describe, expect, test } from "vitest";
import { parseDocuments } from "../../../api/documents/parse.ts";
import { documentsOf } from "../../../api/ui/what-if/posted-documents.ts";
import answers from "./go-scalars.json" with { type: "json" };

/** The JSON to which sigs.k8s.io/yaml 1.6.0 (YAMLToJSON) converts `v: TEXT`; null: it refuses the text. */
const GO_ANSWERS = answers as unknown as readonly (readonly [text: string, json: string | null])[];
/** Go refuses these texts for reasons other than their spelling: a list may not begin there, and `x` is not null. */
const OTHER_REFUSALS = ["-", "!!null x"];

describe("YAML scalars are read as by Kubernetes' library", () => {
  const rows = GO_ANSWERS.filter(([text]) => !OTHER_REFUSALS.includes(text));
  test.each(rows)("%s -> %s", (text, json) => {
    const { documents, problems } = parseDocuments(`v: ${text}\n`, "a.yaml");
    if (json === null) {
      expect(problems).toMatchObject([{ code: "malformed", place: { line: 1, column: 4 } }]);
      return;
    }
    expect(problems).toEqual([]);
    expect(documents[0]?.value).toEqual({ v: plus0(JSON.parse(json)) });
  });

  test("also in lists and flow sequences; quoted ones are text", () => {
    const [document] = parseDocuments("command: [find, ., -name, e2]\nenv: [{name: a, value: 'e2'}]\n", "a").documents;
    expect(document?.value).toEqual({ command: ["find", ".", "-name", "e2"], env: [{ name: "a", value: "e2" }] });
  });

  test("and by the same rule on the what-if page", () => {
    const read = documentsOf({ name: "a", text: "a: e1\nb: 08\nc: 12:30\n" });
    expect(read.ok && read.value[0]?.value).toEqual({ a: "e1", b: 8, c: "12:30" });
  });
});

/** Converts -0 to 0, which are the same number in JSON. */
const plus0 = (value: unknown): unknown => (value === 0 ? expect.closeTo(0) : value);
