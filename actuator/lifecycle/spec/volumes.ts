import { exactValue, isNegative } from "../../../api/model/amount.ts";
import type { HostPathType, PodVolume } from "../pod.ts";
import type { At } from "./at.ts";
import { dnsLabel } from "./names.ts";
import { checkNoBacksteps } from "./path.ts";
import { quantityAt } from "./quantity.ts";
import { checkFields } from "./rule.ts";
import { RULES } from "./rules.ts";

const HOST_PATH_TYPES = [
  "",
  "BlockDevice",
  "CharDevice",
  "Directory",
  "DirectoryOrCreate",
  "File",
  "FileOrCreate",
  "Socket",
] as const satisfies readonly HostPathType[];
const TOKEN_VOLUME = /^kube-api-access-/;

/** kubernetes 1.36: ValidateVolumes, SetDefaults_Volume. */
export function volumesOf(list: At): readonly PodVolume[] {
  const names = new Set<string>();
  return list.items().flatMap((at) => {
    const volume = volumeOf(at);
    const name = at.field("name");
    if (name.isEmpty) name.required();
    else name.invalids(dnsLabel(name.text()));
    if (names.has(name.text())) name.duplicate();
    names.add(name.text());
    return volume === null ? [] : [volume];
  });
}

function volumeOf(at: At): PodVolume | null {
  if (isToken(at)) {
    at.field("projected").fault(
      "a service account's token, which an API server put in: leave out this volume and its mounts; " +
        "`automountServiceAccountToken: false` in the pod keeps it out",
    );
    return null;
  }
  if (!checkFields(at, RULES.Volume)) return null;
  const name = at.field("name").text();
  const sources = at.keys.filter((key) => key !== "name" && !at.field(key).isAbsent);
  for (const source of sources.slice(1)) at.field(source).fault("Forbidden: may not specify more than 1 volume type");
  const hostPath = at.field("hostPath");
  const emptyDir = at.field("emptyDir");
  const ofEmptyDir = emptyDir.isAbsent ? null : emptyDirOf(emptyDir);
  if (!hostPath.isAbsent) return { name, hostPath: hostPathOf(hostPath) };
  if (ofEmptyDir !== null) return { name, emptyDir: ofEmptyDir };
  return sources.length > 0 ? null : { name, emptyDir: { medium: "", sizeLimitBytes: null } };
}
const isToken = (at: At): boolean =>
  at.keys.length === 2 && !at.field("projected").isAbsent && TOKEN_VOLUME.test(String(at.field("name").value));

function hostPathOf(at: At): { readonly path: string; readonly type: HostPathType } {
  checkFields(at, RULES.HostPathVolumeSource);
  const path = at.field("path");
  if (path.isEmpty) path.required();
  else checkNoBacksteps(path);
  // A relative one would be below whatever directory the daemon was started in.
  if (!path.isEmpty && !path.text().startsWith("/")) path.invalid("must be an absolute path");
  return { path: path.text(), type: at.field("type").choice(HOST_PATH_TYPES, "") };
}

function emptyDirOf(at: At): { readonly medium: "" | "Memory"; readonly sizeLimitBytes: number | null } {
  checkFields(at, RULES.EmptyDirVolumeSource);
  const medium = at.field("medium");
  const sizeLimit = at.field("sizeLimit");
  if (medium.text().startsWith("HugePages")) {
    medium.fault("huge pages are not mounted by this daemon: remove it, or set it to Memory");
    return { medium: "", sizeLimitBytes: null };
  }
  const size = sizeLimit.isAbsent ? null : quantityAt(sizeLimit);
  if (size !== null && isNegative(size.amount)) {
    sizeLimit.fault("Forbidden: SizeLimit field must be a valid resource quantity");
  }
  return {
    medium: medium.choice(["Memory"], ""),
    sizeLimitBytes: size === null ? null : Number(exactValue(size.amount)),
  };
}
