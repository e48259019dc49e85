import { join } from "node:path";
import { expect, test } from "vitest";
import { run } from "../../cli/run.ts";
import { criImage, EMPTY, sockets } from "./fake-runtime.ts";

const { dir, serve } = sockets();
const snapshot = (endpoint: string) => run(["snapshot", "--runtime-endpoint", endpoint]);
const START_MS = 180_000;

test("nodewise snapshot contains the lists of the given runtime", { timeout: START_MS }, async () => {
  const ListImages = { images: [criImage("sha256:a", { size: "42", repoTags: ["a:1"] })] };
  const { code, stdout } = await snapshot(await serve({ ...EMPTY, ListImages }, {}, []));
  expect(code).toBe(0);
  const { runtime, stats } = JSON.parse(stdout);
  expect(runtime.images).toMatchObject([{ id: "sha256:a", size: "42" }]);
  expect(runtime).toMatchObject({ containers: [], sandboxes: [] });
  // The runtime does not report where its images are, so nothing is measured.
  expect(stats.node).not.toHaveProperty("runtime");
  expect(stats.node).not.toHaveProperty("fileSystems");
});

test("nodewise snapshot prints nothing to stdout when the runtime cannot be reached, and says why", {
  timeout: START_MS,
}, async () => {
  const socket = join(dir(), "none.sock");
  const { code, stdout, stderr } = await snapshot(socket);
  expect([code, stdout]).toEqual([3, ""]);
  expect(stderr).toContain(
    `nodewise: ListImages: UNAVAILABLE: connect ENOENT ${socket}; there is no socket at ${socket}`,
  );
  const typo = await snapshot("tcp://127.0.0.1:1");
  expect([typo.code, typo.stdout]).toEqual([2, ""]);
  expect(typo.stderr).toContain("only unix sockets are supported");
});
