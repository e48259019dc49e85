import { err, ok, type Result } from "../../model/result.ts";
import type { Profile } from "../../profiles/profile.ts";
import { decodeGo, type GoType, type GoValue } from "./decode.ts";
import { fnv1a } from "./fnv1a.ts";
import { type GoJson, jsonText, parseGoJson } from "./json.ts";

/** The version's behaviour and the gates that the form of the CPU and the memory manager's files depends on. */
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

/** The file's text: that of an older form, and `data` behind it. */
export const withData = (older: string, data: string): string =>
  `${older.slice(0, -1)},"data":${jsonText(data)},"dataChecksum":${checksumOf(data)}}`;

/** `C`: what the file's `data` is decoded to. */
export interface DataForm<C> {
  /** `cpu`, `memory` */
  readonly manager: string;
  /** `v4` */
  readonly version: string;
  /** The Go type of the file: the older form's fields, and these two. */
  readonly name: string;
  readonly older: { readonly name: string; readonly fields: Readonly<Record<string, GoType>> };
  readonly start: () => { [field: string]: GoValue };
  readonly decode: (json: GoJson) => { readonly fields: C; readonly error: string | undefined };
}

/**
 * What a file says in its `data`, the older form around it unread. Undefined: it has none, and is of an older kubelet. Errors: why
 * the kubelet does not take it, which then does not look at the older form. kubelet 1.37: loadAndMigrateCheckpointV4, -V3.
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
