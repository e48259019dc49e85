import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

// Prints everything that a daemon loads as one module of JavaScript, in the place of main.ts.
const ENTRY = fileURLToPath(new URL("main.ts", import.meta.url));
const HOME = dirname(ENTRY);
const DAEMON = join(HOME, "actuator-command.ts");
const FIRST = ["./bundle-first.js", "./main.ts"];

/** @type {import("esbuild").Plugin} */
const ownFiles = {
  name: "own files",
  setup(build) {
    // where a file lies is asked of the module, which is another one now
    build.onLoad({ filter: /\.ts$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8")
        .replaceAll("import.meta.dirname", () => JSON.stringify(dirname(path)))
        .replaceAll("import.meta.url", () => JSON.stringify(pathToFileURL(path).href)),
      loader: "ts",
    }));
    // what other commands load is left where it is
    build.onResolve({ filter: /^\./ }, ({ kind, importer, path }) => {
      const isOther = kind === "dynamic-import" && dirname(importer) === HOME && importer !== DAEMON;
      return isOther ? { path: String(new URL(path, pathToFileURL(importer))), external: true } : undefined;
    });
  },
};

const { outputFiles } = await build({
  stdin: { contents: FIRST.map((file) => `export * from "${file}";`).join("\n"), resolveDir: HOME },
  bundle: true,
  write: false,
  platform: "node",
  format: "esm",
  target: `node${process.versions.node.split(".")[0]}`,
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: "none",
  external: ["better-sqlite3"],
  // packages of the older form ask for each other by `require`
  banner: {
    js: `import { createRequire as requireFrom } from "node:module"; const require = requireFrom(${JSON.stringify(pathToFileURL(ENTRY).href)});`,
  },
  plugins: [ownFiles],
  logLevel: "silent",
});
// One character beyond Latin-1 (esbuild leaves them in regular expressions) and V8 keeps the whole text at two bytes each.
const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
process.stdout.write(outputFiles[0].text.replace(/[^\0-\x7f]/g, escaped));
