import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { listenersIn, listeningPorts, shortestIp } from "../../../actuator/machine/listening-ports.ts";
import { scratchFolder } from "../../kit/scratch.ts";

const HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
const line = (address: string, state: string, inode: string): string =>
  `   0: ${address} 00000000:0000 ${state} 00000000:00000000 00:00000000 00000000  1000        0 ${inode} 1 0000000000000000 100 0 0 10 0\n`;

test("listenersIn reads listening sockets from the kernel's tables, and no others", () => {
  const tcp = HEAD + line("0100007F:46A5", "0A", "11") + line("0100007F:46A6", "01", "12");
  expect(listenersIn(tcp, "TCP")).toEqual([{ protocol: "TCP", ip: "127.0.0.1", port: 18_085, inode: "11" }]);
  const any = "00000000000000000000000000000000";
  const six =
    line(`${any}:0050`, "0A", "13") +
    line("B80D0120000000000000000001000000:0051", "0A", "14") +
    line("0000000000000000FFFF00000A01A8C0:0052", "0A", "15");
  expect(listenersIn(HEAD + six, "TCP").map(({ ip, port }) => `${ip} ${port}`)).toEqual([
    ":: 80",
    "2001:db8::1 81",
    "192.168.1.10 82",
  ]);
  expect(listenersIn(HEAD + line("00000000:0035", "07", "16"), "UDP")).toHaveLength(1);
  expect(listenersIn(`${HEAD}   0: what:is this\n\n`, "TCP")).toEqual([]);
});

test("shortestIp gives each address one form", () => {
  expect(["2001:DB8:0::1", "::ffff:10.0.0.1", "10.0.0.1", "", "no"].map(shortestIp)).toEqual([
    "2001:db8::1",
    "10.0.0.1",
    "10.0.0.1",
    "",
    "no",
  ]);
});

test("the process that owns a socket is found by its file descriptors", () => {
  const root = scratchFolder();
  for (const pid of ["7", "4711"]) mkdirSync(join(root, "proc", pid, "fd"), { recursive: true });
  mkdirSync(join(root, "proc/net"));
  symlinkSync("socket:[11]", join(root, "proc/4711/fd/3"));
  writeFileSync(join(root, "proc/4711/comm"), "python3\n");
  writeFileSync(join(root, "proc/4711/cgroup"), "0::/user.slice\n");
  const ports = listeningPorts(root);
  expect(ports.ownerOf("11")).toEqual({ pid: 4711, name: "python3", cgroup: "0::/user.slice" });
  expect(ports.ownerOf("1")).toBeUndefined();
  // the socket is passed to another process
  rmSync(join(root, "proc/4711/fd/3"));
  symlinkSync("socket:[11]", join(root, "proc/7/fd/4"));
  expect(ports.ownerOf("11")).toEqual({ pid: 7, name: "?", cgroup: "" });
  expect(ports.ownerOf("11")?.pid).toBe(7);
  expect(ports.list()).toEqual([]);
});

test("this process's own server is found on this machine", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as { readonly port: number };
  const ports = listeningPorts();
  const found = ports.list().find((one) => one.port === port && one.protocol === "TCP");
  expect(found?.ip).toBe("127.0.0.1");
  expect(ports.ownerOf(found?.inode ?? "")?.pid).toBe(process.pid);
});
