import type { AskedImage, ContainerConfig, LinuxContainerResources, SandboxConfig } from "./configs.ts";

export type * from "./configs.ts";

/**
 * CRI v1 as TypeScript: the messages of `runtime.proto` in protobuf's JSON names. The loader drops unknown keys of a
 * request without a word, so every request is typed. Answers have all their fields: an empty text, list or map is
 * what was not told, a message that was not told is null, 64-bit numbers are digits.
 */
type Digits = string;
export type TextMap = Readonly<Record<string, string>>;

export interface ImageSpec {
  readonly image: string;
  readonly runtimeHandler: string;
}
export interface Image {
  readonly id: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
  readonly size: Digits;
  /** The user that it runs as, by number or by name; neither: root. */
  readonly uid: { readonly value: Digits } | null;
  readonly username: string;
  readonly spec: ImageSpec | null;
  readonly pinned: boolean;
}
export interface SandboxMetadata {
  readonly name: string;
  readonly uid: string;
  readonly namespace: string;
  readonly attempt: number;
}
export interface Sandbox {
  readonly id: string;
  readonly metadata: SandboxMetadata | null;
  readonly state: string;
  readonly createdAt: Digits;
  readonly labels: TextMap;
  readonly annotations: TextMap;
}
export interface SandboxStatus extends Sandbox {
  /** Empty on the machine's own network. */
  readonly network: { readonly ip: string; readonly additionalIps: readonly { readonly ip: string }[] } | null;
}
interface ContainerBase {
  readonly id: string;
  readonly metadata: { readonly name: string; readonly attempt: number } | null;
  readonly image: ImageSpec | null;
  readonly imageRef: string;
  readonly imageId: string;
  readonly state: string;
  readonly createdAt: Digits;
  readonly labels: TextMap;
  readonly annotations: TextMap;
}
export interface Container extends ContainerBase {
  readonly podSandboxId: string;
}
export interface Mount {
  readonly containerPath: string;
  readonly hostPath: string;
  /** Of an image volume. */
  readonly image: ImageSpec | null;
}
export interface ContainerStatus extends ContainerBase {
  readonly startedAt: Digits;
  readonly finishedAt: Digits;
  readonly exitCode: number;
  readonly reason: string;
  readonly message: string;
  readonly mounts: readonly Mount[];
  readonly logPath: string;
}
export interface FileSystemUsage {
  readonly timestamp: Digits;
  readonly fsId: { readonly mountpoint: string } | null;
  readonly usedBytes: { readonly value: Digits } | null;
  readonly inodesUsed: { readonly value: Digits } | null;
}
export interface ContainerStats {
  readonly attributes: { readonly id: string } | null;
  readonly writableLayer: FileSystemUsage | null;
}
/** `RuntimeReady`, `NetworkReady`, and what else a runtime tells of itself. */
export interface RuntimeCondition {
  readonly type: string;
  readonly status: boolean;
  readonly reason: string;
  readonly message: string;
}

interface Call<Request, Answer> {
  readonly request: Request;
  readonly answer: Answer;
}
type Nothing = Readonly<Record<string, never>>;
interface OfSandbox {
  readonly podSandboxId: string;
}
interface OfContainer {
  readonly containerId: string;
}

export interface CriCalls {
  Version: Call<
    Nothing,
    { readonly runtimeName: string; readonly runtimeVersion: string; readonly runtimeApiVersion: string }
  >;
  Status: Call<
    { readonly verbose: boolean },
    { readonly status: { readonly conditions: readonly RuntimeCondition[] } | null; readonly info: TextMap }
  >;
  RunPodSandbox: Call<{ readonly config: SandboxConfig; readonly runtimeHandler?: string }, OfSandbox>;
  StopPodSandbox: Call<OfSandbox, Nothing>;
  RemovePodSandbox: Call<OfSandbox, Nothing>;
  PodSandboxStatus: Call<OfSandbox, { readonly status: SandboxStatus | null }>;
  ListPodSandbox: Call<Nothing, { readonly items: readonly Sandbox[] }>;
  CreateContainer: Call<
    OfSandbox & { readonly config: ContainerConfig; readonly sandboxConfig: SandboxConfig },
    OfContainer
  >;
  StartContainer: Call<OfContainer, Nothing>;
  StopContainer: Call<OfContainer & { readonly timeout: number }, Nothing>;
  RemoveContainer: Call<OfContainer, Nothing>;
  ListContainers: Call<{ readonly filter?: { readonly id: string } }, { readonly containers: readonly Container[] }>;
  ContainerStatus: Call<
    OfContainer & { readonly verbose?: boolean },
    { readonly status: ContainerStatus | null; readonly info: TextMap }
  >;
  UpdateContainerResources: Call<OfContainer & { readonly linux: LinuxContainerResources }, Nothing>;
  ExecSync: Call<
    OfContainer & { readonly cmd: readonly string[]; readonly timeout: number },
    { readonly stdout: Uint8Array; readonly stderr: Uint8Array; readonly exitCode: number }
  >;
  ListContainerStats: Call<Nothing, { readonly stats: readonly ContainerStats[] }>;
  ListImages: Call<Nothing, { readonly images: readonly Image[] }>;
  ImageStatus: Call<{ readonly image: AskedImage }, { readonly image: Image | null }>;
  PullImage: Call<{ readonly image: AskedImage }, { readonly imageRef: string }>;
  RemoveImage: Call<{ readonly image: AskedImage }, Nothing>;
  ImageFsInfo: Call<
    Nothing,
    { readonly imageFilesystems: readonly FileSystemUsage[]; readonly containerFilesystems: readonly FileSystemUsage[] }
  >;
}
export type CriMethod = keyof CriCalls;
export type CriRequest<M extends CriMethod> = CriCalls[M]["request"];
export type CriAnswer<M extends CriMethod> = CriCalls[M]["answer"];

/** A blob of containerd's content store. */
export interface Blob {
  readonly digest: string;
  readonly size: Digits;
  readonly labels: TextMap;
}
