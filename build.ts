import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { type BuildOptions, build, type Plugin } from "esbuild";

/**
 * `npm run build` writes dist/, from which the package runs; `node build.ts DIR` writes only the packed part of it to
 * DIR. main.js is the command line, serving.js is `nodewise api`, daemon.js is the actuator, and start.js chooses
 * between them. Commands that read a cluster load kube-client.js, and an API that sends traces or metrics loads
 * otlp.js. The API starts the thread modules. worker/ is the Worker as wrangler builds it. The bundles contain all
 * packages except better-sqlite3, which has native code, and uplot, which browsers load.
 */
const ROOT = import.meta.dirname;
const [asked] = process.argv.slice(2);
const DIST = asked ?? join(ROOT, "dist");
const DAEMON = "api/cli/daemon.ts";
/**
 * The entry points. Each of them, like the daemon, is a single module: every additional module takes about 20 KB in
 * addition to its code, which is too much for a daemon.
 */
const ENTRIES = [
  ...["api/cli/start.ts", "api/cli/main.ts", "api/cli/serving.ts", "api/cluster/kube-client.ts"],
  ...["api/server/evaluate-thread.ts", "api/server/history-thread.ts", "api/server/otlp/otlp.ts"],
];

/**
 * Escapes all non-ASCII characters: a single one makes V8 store the module's whole text with two bytes per character.
 */
const escaped = (text: string): string =>
  text.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/**
 * Replaces a module's own location by the location of its source in a checkout: the package contains the files that
 * modules read there, with dist/ beside them. Threads are separate entry points. Packages that a module loads with
 * `require` are bundled too.
 */
function placed(path: string, text: string): string {
  const place = relative(ROOT, path);
  return text
    .replace(/new URL\("\.\/([\w-]+-thread)\.ts", import\.meta\.url\)/g, 'new URL("./$1.js", import.meta_url)')
    .replaceAll("const require = createRequire(import.meta.url);", "")
    .replaceAll("import.meta.url", `new URL(${JSON.stringify(`../${place}`)}, import.meta_url).href`)
    .replaceAll("import.meta.dirname", `(import.meta.dirname + ${JSON.stringify(`/../${dirname(place)}`)})`)
    .replaceAll("import.meta_url", "import.meta.url");
}

/**
 * Turns `import()` into static imports. esbuild wraps a module that is loaded with `import()`, and everything that it
 * imports, in a function, and V8 parses the content of a function twice before it runs. The daemon loads all modules
 * anyway, and starts a tenth faster if it imports them statically.
 */
function loadedAtOnce(text: string): string {
  const imported: string[] = [];
  const rest = text.replace(/(?:await )?\bimport\(("\.[^"]+")\)/g, (_, from) => `loaded${imported.push(from) - 1}`);
  return imported.map((from, i) => `import * as loaded${i} from ${from};`).join("") + rest;
}

const sourcesOf = (isDaemon: boolean): Plugin => ({
  name: "sources",
  setup({ onLoad, onResolve }) {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = placed(path, readFileSync(path, "utf8"));
      return { contents: escaped(isDaemon ? loadedAtOnce(text) : text), loader: "ts" };
    });
    onLoad({ filter: /\.[cm]?js$/ }, ({ path }) => ({ contents: escaped(readFileSync(path, "utf8")), loader: "js" }));
    onResolve({ filter: /\/(?:main|serving|daemon|kube-client|otlp)\.ts$/ }, ({ kind, path }) =>
      kind === "dynamic-import" ? { path: `./${basename(path, ".ts")}.js`, external: true } : undefined,
    );
  },
});

/**
 * The Kubernetes client is used only for kubeconfigs and credentials. The project makes its own requests, so the build
 * leaves out the client's generated API and the HTTP client below it, six sevenths of the package. The names that they
 * export are undefined.
 */
const UNUSED = ["Agent", "ProxyAgent", "createConfiguration", "ServerConfiguration", "setHeaderMiddleware"];
const unused: Plugin = {
  name: "unused",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^(?:undici|\.\/gen\/index\.js|\.\/middleware\.js)$/ }, ({ importer, path }) =>
      importer.includes("/@kubernetes/client-node/dist/") ? { path, namespace: "unused" } : undefined,
    );
    onLoad({ filter: /./, namespace: "unused" }, () => ({
      contents: UNUSED.map((name) => `export const ${name} = undefined;`).join("\n"),
    }));
  },
};

/** The code of packages that the build removes or replaces, by file, each with its replacement. */
const OMITTED_CODE: Readonly<Record<string, readonly (readonly [RegExp, string])[]>> = {
  // the descriptors are only for gRPC reflection, which is not used; they are made once per message, and again for each
  // method that uses the message, which takes 20 ms and 2 MB
  "@grpc/proto-loader/build/src/index.js": [
    [/require\("protobufjs\/ext\/descriptor"\)/, "[]"],
    [/root\.toDescriptor\('proto3'\)\.file/, "[]"],
    [/message\.toDescriptor\('proto3'\)/, "[]"],
    [/messageDescriptor\.\$type\.toObject\(.*?\)/, "[]"],
    [/enumType\.toDescriptor\('proto3'\)/, "[]"],
    [/enumDescriptor\.\$type\.toObject\(.*?\)/, "[]"],
  ],
  // zod compiles a schema to two functions, of which only one is called, and indents their text, which is unnecessary;
  // together this takes 80 ms of the API's start
  "zod/v4/core/compile.js": [[/clone\._zod\.bag\.validator = compileValidator\(schema, parser\);/, ""]],
  "zod/v4/core/doc.js": [
    [/const lines = content\.split[\s\S]*?this\.content\.push\(line\);\s*\}/, "this.content.push(content);"],
  ],
};
const omittedPackages: Plugin = {
  name: "omitted-code",
  setup({ onLoad }) {
    const filter = new RegExp(`/(?:${Object.keys(OMITTED_CODE).join("|").replaceAll(".", "\\.")})$`);
    onLoad({ filter }, ({ path }) => {
      const [, replaced = []] = Object.entries(OMITTED_CODE).find(([file]) => path.endsWith(`/${file}`)) ?? [];
      const contents = replaced.reduce(
        (text, [code, instead]) => {
          if (!code.test(text)) throw new Error(`${path} has no ${code}`);
          return text.replace(code, instead);
        },
        readFileSync(path, "utf8"),
      );
      return { contents: escaped(contents), loader: "js" };
    });
  },
};

/**
 * Loads string-width only for the first text that is not plain ASCII: its tables would delay every start by 70 ms, and
 * most programs never print such a text.
 */
const lazy: Plugin = {
  name: "lazy",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^string-width$/ }, ({ kind, path, resolveDir }) =>
      kind === "import-statement" ? { path, namespace: "lazy", pluginData: resolveDir } : undefined,
    );
    onLoad({ filter: /./, namespace: "lazy" }, ({ path, pluginData: resolveDir }) => ({
      contents: `export default (text) => require(${JSON.stringify(path)}).default(text);`,
      resolveDir,
    }));
  },
};

/**
 * An `import` of a built-in module of Node reads each of its exports at the start. One export of node:http loads all of
 * `fetch`, which takes 20 ms and several megabytes.
 */
const builtInModules: Plugin = {
  name: "built-in-modules",
  setup({ onLoad, onResolve }) {
    onResolve({ filter: /^[\w:/]+$/ }, ({ kind, path }) =>
      kind === "import-statement" && isBuiltin(path) ? { path, namespace: "built-in" } : undefined,
    );
    onLoad({ filter: /./, namespace: "built-in" }, ({ path }) => ({
      contents: `module.exports = process.getBuiltinModule(${JSON.stringify(path)});`,
    }));
  },
};

const common = {
  absWorkingDir: ROOT,
  bundle: true,
  outdir: DIST,
  platform: "node",
  format: "esm",
  target: "node22.18",
  entryNames: "[name]",
  minifySyntax: true,
  minifyWhitespace: true,
  legalComments: "none",
  sourcemap: true,
  sourcesContent: false,
  metafile: true,
  external: ["better-sqlite3", "pg-native"],
  // CommonJS packages load Node's modules with `require`
  banner: {
    js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);',
  },
} satisfies BuildOptions;
const bundled = (entryPoints: string[], isDaemon = false) =>
  build({ ...common, entryPoints, plugins: [unused, omittedPackages, lazy, builtInModules, sourcesOf(isDaemon)] });

/** The licences of all bundled packages, which these licences require. */
function licences(inputs: readonly string[]): string {
  const folders = new Set(inputs.map((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? ""));
  folders.delete("");
  const texts = [...folders].sort().map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(ROOT, folder, "package.json"), "utf8"));
    const file = readdirSync(join(ROOT, folder)).find((one) => /^licen[cs]e/i.test(one));
    const text = file === undefined ? "" : `\n\n${readFileSync(join(ROOT, folder, file), "utf8").trim()}`;
    return `${name} ${version} (${license})${text}\n`;
  });
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

function buildWorker(): void {
  const args = ["deploy", "--dry-run", "--outdir", join(DIST, "worker")];
  const env = { ...process.env, WRANGLER_SEND_METRICS: "false" };
  const bin = join(ROOT, "node_modules/wrangler/bin/wrangler.js");
  const { status, stdout, stderr } = spawnSync(process.execPath, [bin, ...args], { cwd: ROOT, env, encoding: "utf8" });
  if (status !== 0) throw new Error(`wrangler made no Worker:\n${stdout}\n${stderr}`);
}

/** Writes the man pages for packagers; `nodewise man --dir DIR` writes the same pages to where `man` looks. */
function writeManPages(): void {
  const args = [join(ROOT, "api/cli/nodewise.js"), "man", "--dir", join(DIST, "man")];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`no man pages were made: ${stderr}`);
}

rmSync(DIST, { recursive: true, force: true });
const made = await Promise.all([bundled(ENTRIES), bundled([DAEMON], true)]);
writeFileSync(
  join(DIST, "third-party-licenses.txt"),
  licences(made.flatMap((one) => Object.keys(one.metafile.inputs))),
);
writeManPages();
if (asked === undefined) buildWorker();
