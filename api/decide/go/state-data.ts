import { err, ok, type Result } from "../../base/result.ts";
import type { Profile } from "../../profiles/profile.ts";
import { decodeGo, type GoType, type GoValue } from "./decode.ts";
import { fnv1a } from "./fnv1a.ts";
import { type GoJson, jsonText, parseGoJson } from "./json.ts";

/** The version's behaviour and the gates that determine the form of the CPU and memory managers' state files. */
export interface StateForm {
  readonly profile: Pick<Profile, "behaviour" | "words">;
  /** The gate PodLevelResourceManagers. */
  readonly podLevel: boolean;
  /** The gate InPlacePodVerticalScalingExclusiveCPUs. */
  readonly exclusiveResize?: boolean;
}

export const CORRUPTED = "checkpoint is corrupted";

/** FNV-1a over a Go string as spew prints it for hashing. kubelet 1.37: checksum.New. */
const checksumOf = (data: string): number => fnv1a(`(string)${data}`);

/** The file's text: an older form followed by `data`. */
export const withData = (older: string, data: string): string =>
  `${older.slice(0, -1)},"data":${jsonText(data)},"dataChecksum":${checksumOf(data)}}`;

/** How to decode the `data` of a file. `C`: the decoded form. */
export interface DataForm<C> {
  /** The manager's name: `cpu` or `memory`. */
  readonly manager: string;
  /** The version's name: `v4`. */
  readonly version: string;
  /** The Go type of the file: the older form's fields plus `data` and its checksum. */
  readonly name: string;
  readonly older: { readonly name: string; readonly fields: Readonly<Record<string, GoType>> };
  readonly start: () => { [field: string]: GoValue };
  readonly decode: (json: GoJson) => { readonly fields: C; readonly error: string | undefined };
}

/**
 * Reads the `data` of a file and ignores the older form around it. Undefined: the file has no `data` and is of an
 * older kubelet. Errors: why the kubelet refuses the file; it then does not read the older form either. kubelet 1.37:
 * loadAndMigrateCheckpointV4, -V3.
 */
export function readData<C>(json: GoJson, form: DataForm<C>): Result<C, string> | undefined {
  const { manager, version, name, older } = form;
  const fields: Record<string, GoType> = {
    data: { kind: "string", name: "string" },
    dataChecksum: { kind: "uint64", name: "checksum.Checksum" },
  };
  const start = { ...form.start(), checksum: 0n, data: "", dataChecksum: 0n };
  const { value, error } = decodeGo(json, { kind: "struct", name, fields, embedded: older }, start);
  const { data, dataChecksum } = value as unknown as { readonly data: string; readonly dataChecksum: bigint };
  if (data === "" && dataChecksum === 0n) return undefined;
  const failed = (what: string): Result<never, string> => err(`could not load ${version} checkpoint: ${what}`);
  if (error !== undefined) return failed(`failed to deserialize ${manager} manager checkpoint: ${error}`);
  const broken = (why: string) => failed(`failed to deserialize ${manager} manager checkpoint data: ${why}`);
  const inner = parseGoJson(data);
  if (!inner.ok) return broken(inner.error);
  const decoded = form.decode(inner.value);
  if (decoded.error !== undefined) return broken(decoded.error);
  return dataChecksum === BigInt(checksumOf(data)) ? ok(decoded.fields) : failed(CORRUPTED);
}
