import { err, ok, type Result } from "../api/model/result.ts";
import { formText, isConfiguration } from "./manifests/document-form.ts";
import { readObjects } from "./manifests/read-objects.ts";
import type { Problem } from "./ports.ts";

/** A KubeletConfiguration of a file; none is the kubelet's defaults. */
export async function readConfiguration(file: string | undefined): Promise<Result<unknown, Problem>> {
  if (file === undefined) return ok({});
  const read = await readObjects(file);
  if (!read.ok) return err({ from: "configuration", message: `${read.error.file}: ${read.error.message}` });
  const [first] = read.value;
  if (first === undefined) return err({ from: "configuration", message: `${file} holds no document` });
  if (isConfiguration(first.value)) return ok(first.value);
  return err({ from: "configuration", message: `${file} is ${formText(first.value)}, no KubeletConfiguration` });
}
