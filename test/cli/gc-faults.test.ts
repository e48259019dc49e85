import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { realNode } from "../kit/real-node.ts";
import { scratchFolder } from "../kit/scratch.ts";
import { run } from "./run.ts";

const scratch = scratchFolder();
const file = (name: string, value: unknown): string => {
  const path = join(scratch, name);
  writeFileSync(path, typeof value === "string" ? value : JSON.stringify(value));
  return path;
};

describe.concurrent("decide image-gc and container-gc with faulty input", () => {
  const bad = file.bind(null, "bad.json");
  test.each([
    ["half of df", ["image-gc", "--capacity", "1"], /^nodewise: --capacity is only half of it: give --available too /],
    [
      "no size",
      ["image-gc", "--capacity", "x", "--available", "1"],
      /^nodewise: --capacity: `x` is not a quantity .*252Gi$/,
    ],
    [
      "less than nothing",
      ["image-gc", "--capacity", "1", "--available=-1"],
      /^nodewise: --available -1: give bytes or a /,
    ],
    [
      "df for another kind",
      ["eviction", "--capacity", "1", "--available", "1"],
      /: eviction reads no image file system; image-gc does$/,
    ],
    [
      "an operation for another",
      ["eviction", "--operation", "delete-unused"],
      /^nodewise: --operation: eviction collects nothing: .*; image-gc and container-gc do$/,
    ],
    [
      "the operation twice",
      ["image-gc", "--operation", "delete-unused", "--ask", "-"],
      /^nodewise: --ask holds the operation too: /,
    ],
    [
      "no such operation",
      ["image-gc", "--operation", "all"],
      /argument 'all' is invalid\. Allowed choices are garbage-collect, delete-unused\./,
    ],
    [
      "pods as images",
      ["image-gc", "--images", realNode("pods.json")],
      /pods\.json: is an object of kind `List`, and --images takes the runtime's images \(crictl images -o json\): give it with --pods$/,
    ],
    [
      "images as containers",
      ["image-gc", "--containers", realNode("images.json")],
      /images\.json: is what `crictl images` prints, and --containers takes .*: give it with --images$/,
    ],
    [
      "sandboxes as pods",
      ["container-gc", "--pods", realNode("sandboxes.json")],
      /sandboxes\.json: is what `crictl pods` prints, and --pods needs v1\.Pods .*: give it with --sandboxes$/,
    ],
    ["pods as sandboxes", ["container-gc", "--sandboxes", realNode("pods.json")], /: give it with --pods$/],
    [
      "the file systems as a node",
      ["image-gc", "--node", realNode("imagefs.json")],
      /is what `crictl imagefsinfo` prints, .*: give it with --imagefs$/,
    ],
    [
      "facts of what remembers nothing",
      ["container-gc", "--facts", "x"],
      /^nodewise: --facts: container-gc remembers nothing: leave it out; eviction and image-gc do$/,
    ],
  ])("reports %s in one line, with exit code 2", async (_, args, message) => {
    const ran = await run(["decide", ...args.slice(0, 1), "--node", realNode("node.json"), ...args.slice(1)], {
      input: "{}",
    });
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr.trimEnd().split("\n")[0]).toMatch(message);
  });

  test("recognises output about a single object, and names the command that lists them all", async () => {
    const one = file("one.json", { status: { id: "x", repoTags: [] }, info: {} });
    const ran = await run(["decide", "image-gc", "--images", one]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(
      /: is what `crictl inspecti` prints, and --images takes .*: give what `crictl images -o json` prints\n$/,
    );
  });

  test("reports a fault in a list with file, line and path, also in crictl's output", async () => {
    const images = '{"images": [\n  {"id": "a", "size": "1"},\n  {"id": "b", "size": -1}\n]}';
    const ran = await run(["decide", "image-gc", "--images", bad(images)]);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(/bad\.json:3:\d+: runtime\.images\[1\]\.size: /);
  });

  test("names the option and the command for missing input", async () => {
    const ran = await run(["decide", "image-gc", "--node", realNode("node.json")]);
    expect(ran).toMatchObject({ code: 1, stdout: "" });
    expect(ran.stderr).toMatch(
      /; here: --observed-at, --images of `crictl images -o json`, --containers of `crictl ps -a -o json`, --stats, or --capacity and --available of `df -B1`\n$/,
    );
    const none = await run(["decide", "container-gc", "--pods", realNode("pods.json")]);
    expect(none.stderr).toMatch(/--containers of `crictl ps -a -o json`, --sandboxes of `crictl pods -o json`\n$/);
  });

  test("accepts an empty list of sandboxes", async () => {
    const lists = [
      "--sandboxes",
      file("none.json", { items: [] }),
      "--containers",
      file("no.json", { containers: [] }),
    ];
    const ran = await run(["decide", "container-gc", "--snapshot", realNode("snapshot.json"), ...lists]);
    expect(ran).toMatchObject({ code: 0, stderr: "" });
    expect(ran.stdout).toContain("\nKEEPS  nothing is removed\n");
  });
});
