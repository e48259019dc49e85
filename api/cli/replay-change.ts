import { formText, isConfiguration } from "../../actuator/manifests/document-form.ts";
import { issueText, type Origin } from "../inputs/origin.ts";
import { decodeSnapshot } from "../model/decode.ts";
import { configurationPath } from "../model/kubelet-configuration.ts";
import { mergePatch } from "../model/merge-patch.ts";
import { ok, type Result } from "../model/result.ts";
import { type Change, changed } from "../replay/change.ts";
import { EXIT, type Fault, fault } from "./exit.ts";
import { readPart } from "./inputs/part.ts";
import { readDocument } from "./inputs/read.ts";

export interface ChangeGiven {
  readonly config?: string;
  readonly patch?: string;
}

/** `--config` in the place of what was recorded, `--patch` onto that or onto `--config`. Errors: file, line and path. */
export async function readChange({ config, patch }: ChangeGiven): Promise<Result<Change, Fault>> {
  const whole = config === undefined ? ok(undefined) : await readConfiguration(config);
  if (!whole.ok) return whole;
  const kubeletConfiguration = whole.value;
  if (patch === undefined) return ok({ kubeletConfiguration });
  const read = await readPatch(patch);
  if (!read.ok || kubeletConfiguration === undefined) return read;
  const { kubeletConfigurationPatch } = read.value;
  return ok({ kubeletConfiguration: mergePatch(kubeletConfiguration, kubeletConfigurationPatch) });
}

async function readConfiguration(path: string): Promise<Result<unknown, Fault>> {
  const part = await readPart("config", path);
  if (!part.ok) return part;
  const { posted, document, base } = part.value;
  const origins = document === null ? [] : [{ at: [FIELD], source: document, base }];
  const checked = check({ kubeletConfiguration: posted }, origins);
  return checked.ok ? ok(unwrapped(posted)) : checked;
}

async function readPatch(path: string): Promise<Result<Change, Fault>> {
  const read = await readDocument(path);
  if (!read.ok) return read;
  const source = read.value;
  if (!isConfiguration(source.value)) {
    const wanted = "fields of a KubeletConfiguration, such as `kubeReserved: {cpu: 500m}`";
    return fault(EXIT.badInput, `${source.file}: is ${formText(source.value)}, and --patch takes ${wanted}`);
  }
  const change = { kubeletConfigurationPatch: unwrapped(source.value) };
  return check(change, [{ at: [FIELD], source, base: configurationPath(source.value) }]);
}

const FIELD = "kubeletConfiguration";
const unwrapped = (document: unknown): unknown =>
  configurationPath(document).reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], document);

function check(change: Change, origins: readonly Origin[]): Result<Change, Fault> {
  const snapshot = decodeSnapshot(changed({}, change));
  if (snapshot.ok) return ok(change);
  return fault(EXIT.badInput, ...snapshot.error.map((issue) => issueText(issue, origins)));
}
