#!/usr/bin/env node
// biome-ignore-all lint: Nodes as old as 8 must parse this file to be told what to do, so it is written as ES5
/**
 * Starts the command line on a Node that can run it (the code is TypeScript; better-sqlite3 dies without a word on older
 * ones): on this Node, or on the bundled node_modules/.bin/node with the same arguments. Without either: one message, exit 3.
 */
var CANNOT_RUN = 3;
var SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"];
/**
 * A daemon beside other people's pods keeps little garbage, which V8 would let grow with the machine's memory, forgets machine
 * code that has not run for a while, and does without the optimizing compilers, which take 12 MB: the turn of each second
 * takes a millisecond more without them.
 */
var DAEMON_FLAGS = [
  "--max-semi-space-size=2",
  "--optimize-for-size",
  "--flush-baseline-code",
  "--no-opt",
  "--no-maglev",
];
/** A replay keeps some 100 MB, whatever the history has, beside garbage that V8 would let grow with the machine's memory too. */
var REPLAY_FLAGS = ["--max-semi-space-size=16", "--max-old-space-size=512"];
/** glibc gives back at once what is large, such as what compiling the daemon took, and has no arena a thread: 5 MB less. */
var DAEMON_ENVIRONMENT = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "16384" };

/** 22.18 strips types by default; 23.0 to 23.5 are newer and do not. */
function isEnough(version) {
  var match = /^v?(\d+)\.(\d+)\./.exec(version);
  if (match === null) return false;
  var major = Number(match[1]);
  var minor = Number(match[2]);
  return major > 23 || (major === 23 && minor >= 6) || (major === 22 && minor >= 18);
}

/** Old Nodes read this file as CommonJS, and some of them do not parse `import()`. */
function load(name) {
  if (typeof require === "function") return Promise.resolve(require(name));
  return (0, eval)("import(" + JSON.stringify(name) + ")");
}

function fail(message) {
  process.stderr.write("nodewise: " + message + "\n");
  process.exitCode = CANNOT_RUN;
}

/** The first node_modules/.bin/node at or above `from` that is new enough and runs on this machine. */
function findBundled(from, modules) {
  for (var dir = from; ; dir = modules.path.dirname(dir)) {
    var candidate = modules.path.join(dir, "node_modules", ".bin", "node");
    if (modules.fs.existsSync(candidate)) {
      var answer = modules.process.spawnSync(candidate, ["--version"], { encoding: "utf8" });
      if (answer.status === 0 && isEnough(answer.stdout)) return candidate;
    }
    if (dir === modules.path.dirname(dir)) return undefined;
  }
}

/** In the child's environment: it has a channel to us, and nothing to do without us. */
var LAUNCHED = "NODEWISE_LAUNCHED";

/** Ends as asked to when the launcher is gone, which SIGKILL lets tell nobody. */
function endWithLauncher() {
  if (process.env[LAUNCHED] === undefined) return;
  delete process.env[LAUNCHED];
  if (!process.connected) return process.kill(process.pid, "SIGTERM");
  process.on("disconnect", function () {
    process.kill(process.pid, "SIGTERM");
  });
  process.channel.unref();
}

/** Signals go on to the child; its end becomes ours: an exit code, or the signal that ended it. */
function runWith(node, flags, environment, modules) {
  var child;
  var forward = function (signal) {
    child.kill(signal);
  };
  // Before the child is there: a signal that comes while it starts must not leave it behind.
  for (var i = 0; i < SIGNALS.length; i++) process.on(SIGNALS[i], forward);
  child = modules.process.spawn(node, flags.concat(process.argv.slice(1)), {
    stdio: ["inherit", "inherit", "inherit", "ipc"],
    env: Object.assign({}, environment, { NODEWISE_LAUNCHED: "1" }),
  });
  child.on("error", function (error) {
    fail("cannot start " + node + ": " + error.message + "; install the packages again with `npm install`");
  });
  child.on("exit", function (code, signal) {
    for (var i = 0; i < SIGNALS.length; i++) process.removeListener(SIGNALS[i], forward);
    if (signal === null) process.exitCode = code;
    else process.kill(process.pid, signal);
  });
}

function explainMissing(root) {
  var found = "needs Node 22.18 or newer, this is " + process.versions.node;
  var looked = "no such node_modules/.bin/node is at or above " + root;
  var advice = "run `npm install` there (without --omit=optional; it brings a Node for Linux on x64 and arm64)";
  return fail(found + ", and " + looked + ": " + advice + ", or start nodewise with a newer Node");
}

function run(main, root) {
  var call = function (module) {
    return module.main(process.argv.slice(2));
  };
  var explain = function (error) {
    if (error.code !== "ERR_MODULE_NOT_FOUND") throw error;
    fail("its packages are not installed (" + error.message.split("\n")[0] + "): run `npm install` in " + root);
  };
  return load(main).then(call, explain);
}

/** The actuator that runs on; not its single passes, which end soon. */
function isDaemon(argv) {
  var isSingle = function (arg) {
    return arg === "--once" || arg === "--dry-run" || arg === "--help" || arg === "-h";
  };
  return argv[0] === "actuator" && !argv.some(isSingle);
}

/** Its settings are a file, which it reads again at SIGHUP. */
function isReadAgain(argv) {
  return argv.some(function (arg, i) {
    var match = /^--settings(?:=(.*))?$/.exec(arg);
    return match !== null && (match[1] === undefined ? argv[i + 1] : match[1]) !== "-";
  });
}

/** Without those that somebody gave, who knows better. */
function ownFlags(wanted) {
  var given = process.execArgv.concat((process.env.NODE_OPTIONS || "").split(" "));
  return wanted.filter(function (flag) {
    var name = flag.split("=")[0];
    return !given.some(function (one) {
      return one.split("=")[0] === name;
    });
  });
}

/** The same process goes on as another one, where Node can do that: a launcher that waits takes 40 MB. */
function becomeWith(node, flags, environment, modules) {
  if (typeof process.execve !== "function" || node !== process.execPath)
    return runWith(node, flags, environment, modules);
  // it is told to be experimental, which is nothing to the person who starts a daemon
  process.emitWarning = function () {};
  process.execve(node, [node].concat(process.execArgv, flags, process.argv.slice(1)), environment);
}

function start(loaded) {
  var modules = { path: loaded[0], fs: loaded[1], url: loaded[2], process: loaded[3] };
  var home = modules.path.dirname(modules.fs.realpathSync(process.argv[1]));
  var root = modules.path.dirname(modules.path.dirname(home));
  var urlOf = function (name) {
    return String(modules.url.pathToFileURL(modules.path.join(home, name)));
  };
  // Below node_modules Node strips no types; a flag, unlike an import, also reaches the threads that are started later.
  var isInstalled = root.split(modules.path.sep).indexOf("node_modules") >= 0;
  var flags = isInstalled ? ["--import", urlOf("strip-types.js")] : [];
  var environment = process.env;
  var argv = process.argv.slice(2);
  if (isDaemon(argv)) {
    environment = Object.assign({}, DAEMON_ENVIRONMENT, process.env);
    var first = isReadAgain(argv) ? ["--import", urlOf("hang-up.js")] : [];
    flags = ownFlags(DAEMON_FLAGS).concat(first, flags, ["--import", urlOf("bundle-apart.js")]);
  } else if (argv[0] === "replay") flags = ownFlags(REPLAY_FLAGS).concat(flags);
  var isHere = isEnough(process.versions.node);
  var isMissing = function (flag) {
    return process.execArgv.indexOf(flag) < 0;
  };
  if (isHere && !flags.some(isMissing)) {
    endWithLauncher();
    return run(urlOf("main.ts"), root);
  }
  var node = isHere ? process.execPath : findBundled(home, modules);
  return node === undefined ? explainMissing(root) : becomeWith(node, flags, environment, modules);
}

Promise.all(["path", "fs", "url", "child_process"].map(load))
  .then(start)
  .then(undefined, function (error) {
    fail("cannot start: " + error.message);
  });
