import { constants, readFileSync, realpathSync, statfsSync } from "node:fs";
import { join } from "node:path";

/** Where a hierarchy is, with and without links on the way. */
export interface Mounted {
  readonly base: string;
  readonly realBase: string;
  readonly isCgroupfs: boolean;
}

/** statfs(2): magic numbers of cgroup v1 and v2. */
const CGROUPFS: ReadonlySet<number> = new Set([0x27e0eb, 0x63677270]);

/** Looks each mount up once. Throws what the kernel answers. */
export function mountsBelow(mountRoot: string): (mount: string) => Mounted {
  const known = new Map<string, Mounted>();
  return (mount) => {
    const seen = known.get(mount);
    if (seen !== undefined) return seen;
    const base = join(mountRoot, mount);
    const found = { base, realBase: realpathSync.native(base), isCgroupfs: CGROUPFS.has(statfsSync(base).type) };
    known.set(mount, found);
    return found;
  };
}

/** Never follows a link in the last segment; the final line end is dropped. */
export function readText(file: string): string {
  return readFileSync(file, { encoding: "utf8", flag: PLAIN }).trimEnd();
}
// open(2)'s own numbers are taken as well, which the types do not tell
const PLAIN = (constants.O_RDONLY | constants.O_NOFOLLOW) as unknown as string;
