import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { observeLogs, removeLogLink } from "../../../actuator/containerd/logs.ts";
import { type LinkedLog, linkLog, pruneLinks, unlinkLog } from "../../../actuator/pods/sync/log-link.ts";
import { scratch } from "./scratch.ts";

const ID = "0123456789abcdef".repeat(4);
const NAME = `web_shop_app-${ID}.log`;

/** A pod's log, and the directory of links to logs. */
function ground(more: Partial<LinkedLog> = {}) {
  const dir = scratch();
  const log = join(dir, "pods/shop_web_uid-1/app/0.log");
  mkdirSync(dirname(log), { recursive: true });
  writeFileSync(log, "a line\n");
  const linked: LinkedLog = { pod: { namespace: "shop", name: "web" }, container: "app", id: ID, log, ...more };
  return { dir, log, links: join(dir, "var/containers"), linked };
}

test("a container's log is linked under the kubelet's name; linking twice changes nothing", () => {
  const { log, links, linked } = ground();
  for (let i = 0; i < 2; i++) expect(linkLog(links, linked)).toEqual({ ok: true, value: "linked" });
  expect(readdirSync(links)).toEqual([NAME]);
  expect([readlinkSync(join(links, NAME)), readFileSync(join(links, NAME), "utf8")]).toEqual([log, "a line\n"]);
});

test("garbage collection finds the link, and removes it once its log is gone", () => {
  const { dir, log, links, linked } = ground();
  linkLog(links, linked);
  const dangling = () => observeLogs({ podLogs: join(dir, "pods"), containerLogs: links }).danglingLogLinks;
  expect(dangling()).toEqual([]);
  rmSync(log);
  expect(dangling()).toEqual([NAME]);
  expect(removeLogLink(links, NAME)).toEqual({ ok: true, value: "removed" });
});

test("a missing log gets no link", () => {
  const { log, links, linked } = ground();
  rmSync(log);
  expect(linkLog(links, linked)).toEqual({ ok: true, value: "no log" });
  expect(existsSync(links)).toBe(false);
});

test("a link name that is too long is cut before the container id's end", () => {
  const { links, linked } = ground({ pod: { namespace: "n".repeat(63), name: "p".repeat(253) } });
  expect(linkLog(links, linked).ok).toBe(true);
  const [name = ""] = readdirSync(links);
  expect([name.length, name.slice(0, 250), name.slice(-4)]).toEqual([255, "p".repeat(250), ".log"]);
});

test.each([
  ["a file", (path: string) => writeFileSync(path, "kept"), "file exists"],
  ["a link that leads elsewhere", (path: string) => symlinkSync("/elsewhere", path), "file exists"],
])("%s in the link's place stays, and is reported", (_what, put, why) => {
  const { links, linked } = ground();
  mkdirSync(links, { recursive: true });
  put(join(links, NAME));
  expect(linkLog(links, linked)).toEqual({ ok: false, error: expect.stringContaining(`link ${join(links, NAME)}: `) });
  expect(linkLog(links, linked)).toMatchObject({ error: expect.stringContaining(why) });
  expect(unlinkLog(links, linked)).toEqual({ ok: true, value: "not there" });
  expect(readdirSync(links)).toEqual([NAME]);
});

test("a directory that cannot be created is reported, and a container id with a path in it is refused", () => {
  const { dir, linked } = ground();
  writeFileSync(join(dir, "file"), "");
  expect(linkLog(join(dir, "file"), linked)).toMatchObject({
    ok: false,
    error: expect.stringContaining(join(dir, "file")),
  });
  for (const id of ["../../x", "a\0b"])
    for (const act of [linkLog, unlinkLog])
      expect(act(dir, { ...linked, id })).toMatchObject({
        ok: false,
        error: expect.stringContaining("is not the name"),
      });
});

test("the link is removed with its container", () => {
  const { links, linked } = ground();
  linkLog(links, linked);
  expect(unlinkLog(links, linked)).toEqual({ ok: true, value: "removed" });
  expect(unlinkLog(links, linked)).toEqual({ ok: true, value: "not there" });
  expect(readdirSync(links)).toEqual([]);
});

test("links of removed containers are pruned, also with cut names; links to other places stay", () => {
  const { dir, links, linked } = ground();
  linkLog(links, linked);
  const pod = join(dir, "pods/shop_web_uid-1");
  const put = (name: string, target: string): void => symlinkSync(target, join(links, name));
  put("web_shop_app-gone.log", join(pod, "app/0.log"));
  put("web_shop_side-gone.log", join(pod, "side/1.log"));
  writeFileSync(join(links, "web_shop_app-file.log"), "somebody's");
  put("web_shop_app-elsewhere.log", "/elsewhere/shop_web_uid-1/app/0.log");
  put("web_shop_app-other.log", join(dir, "pods/shop_web_uid-2/app/0.log"));
  put("web_shop_app-around.log", `${pod}/../0.log`);
  put("web_shop_app-spec.log", join(pod, "app/notes.log"));
  put("by-hand.log", join(pod, "app/0.log"));
  const others = readdirSync(links).filter((name) => !name.endsWith("-gone.log") && name !== NAME);
  expect(pruneLinks(links, new Map([[pod, [linked]]]))).toEqual({ ok: true, value: null });
  expect(readdirSync(links).sort()).toEqual([...others, NAME].sort());
  expect(pruneLinks(links, new Map([[pod, []]]))).toEqual({ ok: true, value: null });
  expect(readdirSync(links).sort()).toEqual([...others].sort());
  expect(pruneLinks(join(dir, "none"), new Map([[pod, []]]))).toEqual({ ok: true, value: null });

  const [namespace, name] = ["n".repeat(63), "p".repeat(253)];
  const long = join(dir, "pods", `${namespace}_${name}_uid-1`);
  const log = join(long, "app/0.log");
  linkLog(links, { pod: { namespace, name }, container: "app", id: ID, log: linked.log });
  const [cut = ""] = readdirSync(links).filter((link) => link.startsWith("ppp"));
  rmSync(join(links, cut));
  put(cut, log);
  pruneLinks(links, new Map([[long, [{ container: "app", id: ID }]]]));
  expect(existsSync(links) && readdirSync(links)).toContain(cut);
  pruneLinks(links, new Map([[long, []]]));
  expect(readdirSync(links)).not.toContain(cut);
});
