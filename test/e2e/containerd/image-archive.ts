import { execFileSync } from "node:child_process";
import { createCipheriv, createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type TarEntry, tar } from "./tar.ts";

/** A layer of one file with bytes that do not compress; images that name the same seed and size share it. */
export interface LayerSpec {
  readonly seed: string;
  readonly sizeBytes: number;
}
export interface ImageArchiveSpec {
  /** With registry and tag: `nodewise.test/app:1`. */
  readonly name: string;
  /** The size of the layer that is this image's alone; 0: it has none. */
  readonly sizeBytes: number;
  /** Layers that it may share, below its own. */
  readonly layers?: readonly LayerSpec[];
  /** With /bin/busybox as the lowest layer, so that it can run; `tools`: and a link for each of its programs. */
  readonly base?: "busybox" | "tools";
  readonly command?: readonly string[];
  /** As an image names it: `1234`, `nobody`. */
  readonly user?: string;
}
export interface ImageArchive {
  readonly bytes: Buffer;
  /** The image's id: the digest of its configuration. */
  readonly id: string;
  /** Lowest first, as they lie in the content store. */
  readonly layers: readonly { readonly digest: string; readonly sizeBytes: number }[];
}

const sha256 = (bytes: Uint8Array | string): string => createHash("sha256").update(bytes).digest("hex");

/** An image as `docker save` writes it. Pure but for busybox: the same spec gives the same image. */
export function imageArchive(spec: ImageArchiveSpec): ImageArchive {
  const own = spec.sizeBytes > 0 ? [{ seed: `own layer of ${spec.name}`, sizeBytes: spec.sizeBytes }] : [];
  const base = spec.base === undefined ? [] : [tar([BUSYBOX(), ...(spec.base === "tools" ? tools() : [])])];
  const layers = [...base, ...[...(spec.layers ?? []), ...own].map(layerOf)].map((bytes) => ({
    bytes,
    hash: sha256(bytes),
  }));
  const config = JSON.stringify({
    architecture: process.arch === "arm64" ? "arm64" : "amd64",
    os: "linux",
    // Makes two images of the same layers different.
    config: { Cmd: spec.command ?? [], Labels: { name: spec.name }, User: spec.user ?? "" },
    rootfs: { type: "layers", diff_ids: layers.map(({ hash }) => `sha256:${hash}`) },
  });
  const id = sha256(config);
  const manifest = [
    { Config: `${id}.json`, RepoTags: [spec.name], Layers: layers.map(({ hash }) => `${hash}/layer.tar`) },
  ];
  const distinct = new Map(layers.map((layer) => [layer.hash, layer.bytes]));
  const bytes = tar([
    { path: "manifest.json", bytes: Buffer.from(JSON.stringify(manifest)) },
    { path: `${id}.json`, bytes: Buffer.from(config) },
    ...[...distinct].map(([hash, layer]) => ({ path: `${hash}/layer.tar`, bytes: layer })),
  ]);
  return {
    bytes,
    id: `sha256:${id}`,
    layers: layers.map((layer) => ({ digest: `sha256:${layer.hash}`, sizeBytes: layer.bytes.length })),
  };
}

function layerOf({ seed, sizeBytes }: LayerSpec): Buffer {
  const key = createHash("sha256").update(seed).digest();
  const noise = createCipheriv("aes-128-ctr", key.subarray(0, 16), key.subarray(16)).update(Buffer.alloc(sizeBytes));
  return tar([{ path: `data/${key.toString("hex").slice(0, 16)}`, bytes: noise }]);
}

const BUSYBOX = (): TarEntry => ({ path: "bin/busybox", bytes: busybox(), mode: 0o755 });
const tools = (): readonly TarEntry[] =>
  execFileSync("/bin/busybox", ["--list"], { encoding: "utf8" })
    .split("\n")
    .filter((name) => name !== "" && name !== "busybox")
    .map((name) => ({ path: `bin/${name}`, bytes: Buffer.alloc(0), mode: 0o777, link: "busybox" }));

let busyboxBytes: Buffer | undefined;
function busybox(): Buffer {
  busyboxBytes ??= readFileSync("/bin/busybox");
  return busyboxBytes;
}
