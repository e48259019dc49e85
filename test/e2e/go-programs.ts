import { accessSync, constants } from "node:fs";
import { basename, join } from "node:path";
import { NEWEST } from "../../api/profiles/index.ts";
import { CACHE } from "../kit/cache.ts";

/**
 * A program that `.ci/go-programs MODULE@vVERSION NAME` builds. `name` is its folder in the module or in the module's
 * `cmd` folder.
 */
export interface GoProgram {
  readonly module: string;
  readonly version: string;
  readonly name: string;
}
/** The version of Kubernetes that most tests use. */
export const KUBERNETES = "1.36.3";
/** The newest version, which the tests of a real cluster use as well. */
export const NEWEST_KUBERNETES = NEWEST.release;
export const kubernetes = (name: string, version = KUBERNETES): GoProgram => ({
  module: "k8s.io/kubernetes",
  version,
  name,
});
/** The Kubernetes project's own DRA driver, built on the helper library that vendors' drivers use. */
export const draTestDriver = (version = KUBERNETES): GoProgram => kubernetes("test/e2e/dra/test-driver", version);
export const KWOK: GoProgram = { module: "sigs.k8s.io/kwok", version: "0.8.0", name: "kwok" };

const containerd = (name: string): GoProgram => ({
  module: "github.com/containerd/containerd",
  version: "1.7.35",
  name,
});
/**
 * The first containerd that can inject CDI devices (its configuration has to enable it), with the programs that it
 * needs.
 */
export const CONTAINERD = [containerd("containerd"), containerd("ctr"), containerd("containerd-shim-runc-v2")] as const;

/** Where `.ci/go-programs` puts the program. */
export const pathOf = ({ module, version, name }: GoProgram): string =>
  join(CACHE, `${module.slice(module.lastIndexOf("/") + 1)}-${version}`, basename(name));

/**
 * Why `what` cannot be tested here, printed once; undefined: all programs exist. CI may lack them, because building
 * them takes long.
 */
export function noGoPrograms(what: string, ...programs: readonly GoProgram[]): string | undefined {
  const missing = programs.filter((program) => !isThere(pathOf(program)));
  if (missing.length === 0) return undefined;
  const commands = missing.map(({ module, version, name }) => `.ci/go-programs ${module}@v${version} ${name}`);
  console.warn(`skipped ${what} end to end: build once with ${commands.join(" and ")}`);
  return `no ${missing.map(({ name, version }) => `${name} ${version}`).join(" and ")}`;
}

function isThere(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
