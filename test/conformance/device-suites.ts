import { type DeviceCheckpoint, writeCheckpoint } from "../../api/decide/devices/checkpoint.ts";
import { readCheckpoint } from "../../api/decide/devices/checkpoint-read.ts";
import { type Inventory, inventoriesOf } from "../../api/decide/devices/inventory.ts";
import { deviceHints } from "../../api/decide/devices/manager.ts";
import { idsOf, numaNodes } from "../../api/decide/topology/hint.ts";
import { epochMs } from "../../api/model/units.ts";
import { hashedText } from "../decide/devices/hashed-text.ts";
import { type Suite, suite } from "./suite.ts";

interface CheckpointInput {
  readonly entries:
    | readonly {
        readonly podUID: string;
        readonly container: string;
        readonly resource: string;
        readonly devicesPerNUMA: Readonly<Record<string, readonly string[]>>;
        readonly allocateResponse: string;
      }[]
    | null;
  readonly registered: Readonly<Record<string, readonly string[]>>;
}
function checkpointOf({ entries, registered }: CheckpointInput): DeviceCheckpoint {
  const read = entries?.map((e) => ({
    podUid: e.podUID,
    containerName: e.container,
    resourceName: e.resource,
    deviceIds: new Map(Object.entries(e.devicesPerNUMA).map(([node, ids]) => [Number(node), ids] as const)),
    allocResp: e.allocateResponse,
  }));
  return { entries: read ?? null, registered: new Map(Object.entries(registered)) };
}

/** The file is also read back: the decoded checkpoint must produce the same file. */
const deviceCheckpoint = suite({
  read: checkpointOf,
  decide: (checkpoint) => {
    const file = writeCheckpoint(checkpoint);
    const back = readCheckpoint(file);
    return { file: back.ok ? writeCheckpoint(back.value) : back.error, checkpoint };
  },
  show: ({ file, checkpoint }) => ({ file, hashed: hashedText(checkpoint) }),
});

interface HintsInput {
  readonly numaCount: number;
  readonly devices: readonly { readonly id: string; readonly numaNodes: readonly number[] | null }[];
  readonly available: readonly string[];
  readonly reusable: readonly string[];
  readonly request: number;
}
const resource = "r";
const hints = suite({
  read: ({ numaCount, devices, ...asked }: HintsInput) => ({
    ...asked,
    numa: numaNodes(Array.from({ length: numaCount }, (_, id) => id)),
    inventory: inventoriesOf({
      resources: [{ resource, devices: devices.map((d) => ({ id: d.id, numaNodes: d.numaNodes ?? undefined })) }],
      checkpointed: [],
      now: epochMs(0),
      kubeletStartedAt: undefined,
    }).get(resource) as Inventory,
  }),
  decide: ({ inventory, available, reusable, request, numa }, { behaviour }) => ({
    numa,
    list: deviceHints(inventory, available, reusable, request, { nodes: numa, behaviour }),
  }),
  show: ({ numa, list }) => ({
    hints: list.map(({ nodes, preferred }) => ({ numaNodes: idsOf(numa, nodes as number), preferred })),
  }),
});

export const DEVICE_SUITES: Readonly<Record<string, Suite>> = {
  "device-checkpoint": deviceCheckpoint,
  "x-dev-hints": hints,
};
