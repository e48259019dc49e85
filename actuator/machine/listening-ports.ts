import { readdirSync, readlinkSync } from "node:fs";
import { type MachineFiles, machineFiles } from "./files.ts";

/** A socket bound to a port of the machine. */
export interface Listener {
  readonly protocol: "TCP" | "UDP";
  /** The shortest form of the address; an IPv4 address also if an IPv6 socket has it. */
  readonly ip: string;
  readonly port: number;
  /** `/proc/PID/fd/N` links to `socket:[INODE]`. */
  readonly inode: string;
}
export interface SocketOwner {
  readonly pid: number;
  readonly name: string;
  /** Text of `/proc/PID/cgroup`. */
  readonly cgroup: string;
}
/** Finds the processes that hold the ports of the daemon's network. */
export interface ListeningPorts {
  /** The listeners; empty: they cannot be read. */
  list(): readonly Listener[];
  /** The process with a socket; undefined: none is visible. */
  ownerOf(inode: string): SocketOwner | undefined;
}

const TABLES = [
  ["tcp", "TCP"],
  ["tcp6", "TCP"],
  ["udp", "UDP"],
  ["udp6", "UDP"],
] as const;
/** TCP_LISTEN; a UDP socket that receives from any address is TCP_CLOSE. Linux: net/tcp_states.h. */
const WAITS = { TCP: "0A", UDP: "07" } as const;
const MAX_HOLDERS = 100;
const MAPPED = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/;

/** `root`: where the machine's /proc is; unreadable files count as missing. */
export function listeningPorts(root = "/"): ListeningPorts {
  /** Inode -> process that last held it: checked first, since checking all processes takes long. */
  const holders = new Map<string, string>();
  return {
    list: () => {
      const files = machineFiles(root);
      return TABLES.flatMap(([table, protocol]) =>
        listenersIn(files.optionalText(`/proc/net/${table}`) ?? "", protocol),
      );
    },
    ownerOf: (inode) => {
      const files = machineFiles(root);
      const isHolder = (pid: string): boolean => holds(`${root}/proc/${pid}/fd`, inode);
      const before = holders.get(inode);
      holders.delete(inode);
      const pid = before !== undefined && isHolder(before) ? before : pidsIn(files).find(isHolder);
      if (pid === undefined) return undefined;
      if (holders.size >= MAX_HOLDERS) holders.clear();
      holders.set(inode, pid);
      return ownerOf(files, pid);
    },
  };
}

/** Parses a table such as /proc/net/tcp: `sl local_address rem_address st ... inode`. */
export function listenersIn(table: string, protocol: Listener["protocol"]): readonly Listener[] {
  return table.split("\n").flatMap((line) => {
    const [, local = "", , state, , , , , , inode = ""] = line.trim().split(/\s+/);
    const [address = "", port = ""] = local.split(":");
    const isWhole = /^(?:[\dA-F]{8}|[\dA-F]{32})$/.test(address) && /^[\dA-F]{4}$/.test(port) && /^\d+$/.test(inode);
    if (!isWhole || state !== WAITS[protocol]) return [];
    return [{ protocol, ip: ipOf(address), port: Number.parseInt(port, 16), inode }];
  });
}

/** Parses an address: the kernel prints its words in this machine's byte order, which is little-endian on nodes. */
function ipOf(hex: string): string {
  const words = hex.match(/.{8}/g) ?? [];
  const bytes = words.flatMap((word) => (word.match(/../g) ?? []).toReversed());
  if (bytes.length === 4) return bytes.map((byte) => Number.parseInt(byte, 16)).join(".");
  return shortestIp((bytes.join("").match(/.{4}/g) ?? []).join(":"));
}

/** The shortest form of an IP; other texts stay unchanged. */
export function shortestIp(ip: string): string {
  if (!ip.includes(":") || !URL.canParse(`http://[${ip}]`)) return ip;
  const shortest = new URL(`http://[${ip}]`).hostname.slice(1, -1);
  const [, high, low] = MAPPED.exec(shortest) ?? [];
  if (high === undefined || low === undefined) return shortest;
  const number = [high, low].map((part) => Number.parseInt(part, 16));
  return number.flatMap((part) => [part >> 8, part & 255]).join(".");
}

const pidsIn = (files: MachineFiles): readonly string[] => files.names("/proc").filter((name) => /^\d+$/.test(name));

function ownerOf(files: MachineFiles, pid: string): SocketOwner {
  const text = (file: string): string => files.optionalText(`/proc/${pid}/${file}`) ?? "";
  return { pid: Number(pid), name: text("comm") || "?", cgroup: text("cgroup") };
}

function holds(directory: string, inode: string): boolean {
  try {
    return readdirSync(directory).some((fd) => linkOf(`${directory}/${fd}`) === `socket:[${inode}]`);
  } catch {
    // the process is gone, or not readable
    return false;
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
