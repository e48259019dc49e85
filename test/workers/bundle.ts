import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { SourceMap } from "node:module";
import { basename, join, matchesGlob } from "node:path";
import { build } from "esbuild";
import type { Plugin } from "vitest/config";

const ROOT = join(import.meta.dirname, "../..");
const CACHE = join(ROOT, "node_modules/.cache");
const WORKER = join(ROOT, "api/worker.ts");

/** A rule like those of wrangler.toml: workerd itself loads the modules that `bundle` makes. */
export const BUNDLED = { type: "ESModule" as const, include: ["**/.cache/workers-*/*.mjs"], fallthrough: true };

/**
 * Bundles the tests and the Worker into a few modules, which share most of their code, with the options that wrangler
 * uses for the Worker.
 */
async function make(folder: string, tests: readonly string[], texts: readonly string[]): Promise<void> {
  await build({
    absWorkingDir: ROOT,
    // the Worker's entry only re-exports its module, so that the tests and the Worker share one instance of it
    entryPoints: [...tests.map((file) => ({ in: file, out: basename(file) })), { in: "worker", out: "worker" }],
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "browser",
    conditions: ["workerd", "worker", "module", "browser"],
    sourcemap: true,
    external: ["cloudflare:*", "node:*", "vitest"],
    plugins: [
      {
        name: "worker",
        setup({ onLoad, onResolve }) {
          onResolve({ filter: /^worker$/ }, ({ path }) => ({ path, namespace: "worker" }));
          onLoad({ filter: /./, namespace: "worker" }, () => ({ contents: exported(WORKER), resolveDir: ROOT }));
          onResolve({ filter: /\?raw$/ }, ({ path, resolveDir }) => ({
            path: join(resolveDir, path.slice(0, -"?raw".length)),
            namespace: "raw",
          }));
          onLoad({ filter: /./, namespace: "raw" }, ({ path }) => ({
            contents: readFileSync(path, "utf8"),
            loader: "text",
          }));
          onLoad({ filter: /\.(?:sql|js|css)$/ }, ({ path }) =>
            texts.some((glob) => matchesGlob(path, glob))
              ? { contents: readFileSync(path, "utf8"), loader: "text" }
              : undefined,
          );
        },
      },
    ],
  });
}
const exported = (path: string): string =>
  `export * from ${JSON.stringify(path)}; export { default } from ${JSON.stringify(path)};`;

/**
 * Without the bundle, each test file would load hundreds of modules one after the other. vitest would transform each of
 * them, send it to workerd, and resolve every import again at each use.
 */
export function bundle(): Plugin {
  let made: Promise<void> | undefined;
  let tests: readonly string[] = [];
  let folder = "";
  const once = async (): Promise<void> => {
    const { unstable_readConfig } = await import("wrangler");
    const { rules } = unstable_readConfig({ config: join(ROOT, "wrangler.toml") });
    const texts = rules.flatMap(({ globs }: { readonly globs: readonly string[] }) => globs);
    mkdirSync(CACHE, { recursive: true });
    folder = mkdtempSync(join(CACHE, "workers-"));
    await make(folder, tests, texts);
  };
  return {
    name: "bundle",
    enforce: "pre",
    // vitest has no source maps for modules that workerd has loaded
    config: () => ({
      test: {
        onStackTrace: (_error, frame) =>
          void (made && frame.file.includes(basename(folder)) && Object.assign(frame, placeIn(folder, frame))),
      },
    }),
    async configureVitest({ vitest, project }) {
      vitest.onClose(() => {
        if (made !== undefined) rmSync(folder, { recursive: true, force: true });
      });
      tests = (await project.globTestFiles()).testFiles;
    },
    async load(id) {
      if (id !== WORKER && !tests.includes(id)) return;
      made ??= once();
      await made;
      return id === WORKER
        ? exported(join(folder, "worker.mjs"))
        : `import ${JSON.stringify(join(folder, `${basename(id)}.mjs`))};`;
    },
  };
}

/** The position in the sources for a position in the bundle. */
function placeIn(folder: string, frame: Frame): Frame {
  const module = basename(frame.file).replace(/\?.*$/, "");
  const map = new SourceMap(JSON.parse(readFileSync(join(folder, `${module}.map`), "utf8")));
  const { fileName, lineNumber, columnNumber } = map.findOrigin(frame.line, frame.column) as NodeJS.Dict<never>;
  return fileName === undefined
    ? frame
    : { file: join(folder, fileName), line: lineNumber ?? 0, column: columnNumber ?? 0 };
}
interface Frame {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}
