import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { build, type Plugin } from "esbuild";

const OWN_REQUIRE = "const require = createRequire(import.meta.url);";
/**
 * A module that loads packages through its own `require` would look for them in the guest, so the plugin adds them to
 * the bundle.
 */
const packagesComeAlong: Plugin = {
  name: "packages-come-along",
  setup: ({ onLoad }) =>
    onLoad({ filter: /\/actuator\/.*\.ts$/ }, async ({ path }) => {
      return { contents: (await readFile(path, "utf8")).replace(OWN_REQUIRE, ""), loader: "ts" };
    }),
};

/** Bundles an end-to-end program into one file that Node runs in the guest. */
export async function bundle(file: string): Promise<Uint8Array> {
  const result = await build({
    entryPoints: [join(import.meta.dirname, "..", file)],
    bundle: true,
    write: false,
    platform: "node",
    format: "esm",
    target: "node24",
    logLevel: "silent",
    plugins: [packagesComeAlong],
    // CommonJS packages call require for Node's built-in modules.
    banner: {
      js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);',
    },
  });
  const output = result.outputFiles[0];
  if (output === undefined) throw new Error(`esbuild wrote nothing for ${file}`);
  return output.contents;
}
