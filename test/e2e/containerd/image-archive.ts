import { execFileSync } from "node:child_process";
import { createCipheriv, createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { type TarEntry, tar } from "./tar.ts";

/**
 * A layer with one file of bytes that do not compress; images whose layers have the same seed and size share the layer.
 */
export interface LayerSpec {
  readonly seed: string;
  readonly sizeBytes: number;
}
export interface ImageArchiveSpec {
  /** The name with registry and tag: `nodewise.test/app:1`. */
  readonly name: string;
  /** The size of the layer that only this image has; 0: it has no such layer. */
  readonly sizeBytes: number;
  /** Layers below the image's own, which other images may share. */
  readonly layers?: readonly LayerSpec[];
  /** The lowest layer, so that the image can run: /bin/busybox; `tools`: also a link for each of busybox's programs. */
  readonly base?: "busybox" | "tools";
  readonly command?: readonly string[];
  /** The user in the image's configuration: `1234`, `nobody`. */
  readonly user?: string;
}
export interface ImageArchive {
  /** The image's id: the digest of its configuration. */
  readonly id: string;
  /** The layers as in the content store, the lowest first. */
  readonly layers: readonly { readonly digest: string; readonly sizeBytes: number }[];
}

const sha256 = (bytes: Uint8Array | string): string => createHash("sha256").update(bytes).digest("hex");

/** Images in the format of `docker save`. The archive depends only on the specs and on busybox. */
export function imageArchive(...specs: readonly ImageArchiveSpec[]) {
  const images = specs.map(imageOf);
  const manifest = images.map(({ hash, layers }, i) => ({
    Config: `${hash}.json`,
    RepoTags: [specs[i]?.name],
    Layers: layers.map((layer) => `${layer.hash}/layer.tar`),
  }));
  const distinct = new Map(images.flatMap(({ layers }) => layers).map((layer) => [layer.hash, layer.bytes]));
  const bytes = tar([
    { path: "manifest.json", bytes: Buffer.from(JSON.stringify(manifest)) },
    ...images.map(({ config, hash }) => ({ path: `${hash}.json`, bytes: Buffer.from(config) })),
    ...[...distinct].map(([hash, layer]) => ({ path: `${hash}/layer.tar`, bytes: layer })),
  ]);
  const reported = images.map(
    ({ hash, layers }): ImageArchive => ({
      id: `sha256:${hash}`,
      layers: layers.map((layer) => ({ digest: `sha256:${layer.hash}`, sizeBytes: layer.bytes.length })),
    }),
  );
  return { bytes, images: reported };
}

interface Layer {
  readonly bytes: Buffer;
  readonly hash: string;
}
/** The image's configuration with its hash, and its layers. */
function imageOf(spec: ImageArchiveSpec) {
  const own = spec.sizeBytes > 0 ? [{ seed: `own layer of ${spec.name}`, sizeBytes: spec.sizeBytes }] : [];
  const base = spec.base === undefined ? [] : [baseLayer(spec.base)];
  const layers = [...base, ...[...(spec.layers ?? []), ...own].map(layerOf)];
  const config = JSON.stringify({
    architecture: process.arch === "arm64" ? "arm64" : "amd64",
    os: "linux",
    // The label makes images with the same layers differ.
    config: { Cmd: spec.command ?? [], Labels: { name: spec.name }, User: spec.user ?? "" },
    rootfs: { type: "layers", diff_ids: layers.map(({ hash }) => `sha256:${hash}`) },
  });
  return { config, hash: sha256(config), layers };
}

const layer = (bytes: Buffer): Layer => ({ bytes, hash: sha256(bytes) });
function layerOf({ seed, sizeBytes }: LayerSpec): Layer {
  const key = createHash("sha256").update(seed).digest();
  const noise = createCipheriv("aes-128-ctr", key.subarray(0, 16), key.subarray(16)).update(Buffer.alloc(sizeBytes));
  return layer(tar([{ path: `data/${key.toString("hex").slice(0, 16)}`, bytes: noise }]));
}

const baseLayers = new Map<string, Layer>();
/** The base layers are cached, because nearly every image has one of them. */
function baseLayer(base: "busybox" | "tools"): Layer {
  const made = baseLayers.get(base) ?? layer(tar([busybox(), ...(base === "tools" ? tools() : [])]));
  baseLayers.set(base, made);
  return made;
}
const busybox = (): TarEntry => ({ path: "bin/busybox", bytes: readFileSync("/bin/busybox"), mode: 0o755 });
const tools = (): readonly TarEntry[] =>
  execFileSync("/bin/busybox", ["--list"], { encoding: "utf8" })
    .split("\n")
    .filter((name) => name !== "" && name !== "busybox")
    .map((name) => ({ path: `bin/${name}`, bytes: Buffer.alloc(0), mode: 0o777, link: "busybox" }));
