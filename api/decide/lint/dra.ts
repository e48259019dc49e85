import { fieldsOf } from "../../model/own.ts";
import type { ResourceSlice, SliceDevice } from "../../model/resource-claim.ts";
import { error, type LintFinding, warning } from "./finding.ts";
import type { LintInput } from "./input.ts";

/** Finds what has two owners on a node with DRA drivers, and what the runtime does not do for them. */
export function draFindings(input: LintInput): readonly LintFinding[] {
  return [...cpuOwners(input), ...resourceOwners(input), ...cdi(input)];
}

/** The Kubernetes project's own driver of CPUs. */
const CPU_DRIVER = "dra.cpu";
/** Devices that are CPUs are mapped to the node's; an overhead is what a device takes beside itself. kubernetes 1.37: NodeAllocatableResource. */
const isOfCpus = ({ nodeAllocatableResources, nodeAllocatableResourceMappings }: SliceDevice): boolean =>
  fieldsOf(nodeAllocatableResources?.["cpu"])["mapping"] !== undefined ||
  nodeAllocatableResourceMappings?.["cpu"] !== undefined;

function cpuOwners({ snapshot, config }: LintInput): readonly LintFinding[] {
  if (config.cpuManagerPolicy !== "static") return [];
  const mapped = slicesHere(snapshot).filter(({ spec: { devices = [] } }) => devices.some(isOfCpus));
  const known = driversHere(snapshot).filter((name) => name === CPU_DRIVER);
  const drivers = new Set([...mapped.map(({ spec }) => spec.driver), ...known]);
  return [...drivers].sort().map((driver) =>
    error({
      code: "two-cpu-owners",
      field: "cpuManagerPolicy",
      message: `the static CPU manager gives CPUs to containers, and so does the DRA driver ${driver}: neither knows what the other has given, and two containers get the same CPUs`,
      advice: `let one of them give CPUs: cpuManagerPolicy none beside ${driver}, or take the driver from this node`,
      fix: { cpuManagerPolicy: "none" },
    }),
  );
}

/** Those of this node, where a slice says of which node it is. */
function slicesHere(snapshot: LintInput["snapshot"]): readonly ResourceSlice[] {
  const name = snapshot?.node?.metadata.name;
  const slices = snapshot?.dra?.resourceSlices ?? [];
  return slices.filter(({ spec }) => name === undefined || spec.nodeName === undefined || spec.nodeName === name);
}

const driversHere = (snapshot: LintInput["snapshot"]): readonly string[] => [
  ...slicesHere(snapshot).map(({ spec }) => spec.driver),
  ...(snapshot?.dra?.drivers ?? []).map(({ name }) => name),
];

function resourceOwners({ snapshot, isOn }: LintInput): readonly LintFinding[] {
  if (snapshot === null || !isOn("DRAExtendedResource")) return [];
  const plugins = new Set([...(snapshot.devices ?? []), ...(snapshot.devicePlugins ?? [])].map((one) => one.resource));
  return (snapshot.dra?.deviceClasses ?? []).flatMap(({ metadata, spec }) => {
    const resource = spec?.extendedResourceName;
    if (resource === undefined || !plugins.has(resource)) return [];
    return [
      warning({
        code: "plugin-and-driver",
        field: 'featureGates["DRAExtendedResource"]',
        message: `${resource} is given by a device plugin of this node, and DeviceClass ${metadata.name} stands for it too: a pod gets it of the plugin here, and of a DRA driver on other nodes`,
        advice: `have one of them on a node: stop the plugin once the driver runs, or take extendedResourceName from DeviceClass ${metadata.name}`,
      }),
    ];
  });
}

function cdi({ snapshot }: LintInput): readonly LintFinding[] {
  const enabled = snapshot?.runtime?.info?.config?.enableCDI;
  const [driver] = driversHere(snapshot).toSorted();
  const isClaimed = snapshot?.pods?.some(({ spec }) => (spec.resourceClaims ?? []).length > 0) === true;
  if (enabled !== false || (driver === undefined && !isClaimed)) return [];
  const gives = driver === undefined ? "DRA drivers give their" : `the DRA driver ${driver} gives its`;
  return [
    error({
      code: "cdi-off",
      field: "containerRuntimeEndpoint",
      message: `the runtime has CDI off (enable_cdi), and ${gives} devices as CDI devices: containers with claims do not start`,
      advice: "set enable_cdi = true in containerd's CRI plugin (its default from 2.0 on), and restart containerd",
    }),
  ];
}
