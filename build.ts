import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { type BuildOptions, build, type Plugin } from "esbuild";

/**
 * `npm run build` writes dist/, which the package runs from; `node build.ts DIR` writes to DIR what of it is packed. main.js
 * is the command line, serving.js `nodewise api`, daemon.js the actuator, and start.js chooses between them; kube-client.js is loaded by
 * what reads a cluster, and otlp.js by an API that tells traces or metrics; the threads are the API's; worker/ is the Worker as wrangler makes it. All packages are within, but for better-sqlite3, which is not JavaScript
 * alone, and uplot, which browsers load.
 */
const ROOT = import.meta.dirname;
const [asked] = process.argv.slice(2);
const DIST = asked ?? join(ROOT, "dist");
const DAEMON = "api/cli/daemon.ts";
/** Each, as the daemon, is one module: a module takes some 20 KB beside its code, which a daemon cannot afford. */
const ENTRIES = [
  ...["api/cli/start.ts", "api/cli/main.ts", "api/cli/serving.ts", "api/cluster/kube-client.ts"],
  ...["api/server/evaluate-thread.ts", "api/server/history-thread.ts", "api/server/otlp/otlp.ts"],
];

/** One character beyond ASCII, and V8 keeps the whole text of a module at two bytes each. */
const escaped = (text: string): string =>
  text.replace(/[^\0-\x7f]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/**
 * A module that asks where it lies is told where its source lies in a checkout: the package has what modules read there, and
 * dist/ beside it. Threads are entries of their own, and packages that a module loads by `require` come along.
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
 * A module that is loaded by `import()` becomes a function of the bundle, as does all that it imports, and V8 reads what is within a
 * function twice before it runs. The daemon comes to load everything: imported at once, its start takes a tenth less.
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
 * The Kubernetes client is here for kubeconfigs and credentials. Requests are our own, so its generated API and the HTTP client
 * under that, which are six sevenths of it, stay out: names of theirs are undefined.
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

/** Code of packages that the build leaves out or replaces, by file, with the replacement. */
const OMITTED_CODE: Readonly<Record<string, readonly (readonly [RegExp, string])[]>> = {
  // for reflection, which nobody asks for, each message is described anew, and again for each method that uses it: 20 ms and 2 MB
  "@grpc/proto-loader/build/src/index.js": [
    [/require\("protobufjs\/ext\/descriptor"\)/, "[]"],
    [/root\.toDescriptor\('proto3'\)\.file/, "[]"],
    [/message\.toDescriptor\('proto3'\)/, "[]"],
    [/messageDescriptor\.\$type\.toObject\(.*?\)/, "[]"],
    [/enumType\.toDescriptor\('proto3'\)/, "[]"],
    [/enumDescriptor\.\$type\.toObject\(.*?\)/, "[]"],
  ],
  // of two functions that a form is compiled to one is called, and their text need not be indented: 80 ms of the API's start
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
 * Loaded with the first text that is not plain ASCII: its tables take 70 ms, which every start would wait for, and most programs end
 * without one.
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
 * An `import` of a module that is built into Node reads each of its exports at the start. One of those of node:http loads all of `fetch`,
 * which takes 20 ms and some megabytes.
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
  // packages in CommonJS ask for Node's modules by `require`
  banner: {
    js: 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);',
  },
} satisfies BuildOptions;
const bundled = (entryPoints: string[], isDaemon = false) =>
  build({ ...common, entryPoints, plugins: [unused, omittedPackages, lazy, builtInModules, sourcesOf(isDaemon)] });

/** The licences of all packages that are within, as those ask for it. */
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

/** For packagers; `nodewise man --dir DIR` writes the same where `man` looks. */
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
