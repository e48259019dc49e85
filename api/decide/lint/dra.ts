import { fieldsOf } from "../../base/own.ts";
import type { DeviceClass, ResourceSlice, SliceDevice } from "../../model/resource-claim.ts";
import { pluginResources, reportsDevices } from "../allocatable/capacity.ts";
import { slicesHere } from "../dra/allocation.ts";
import { error, type LintFinding, warning } from "./finding.ts";
import type { LintInput } from "./input.ts";

/** Finds resources that two owners manage on a node with DRA drivers, and runtime settings that drivers need. */
export function draFindings(input: LintInput): readonly LintFinding[] {
  return [...cpuOwners(input), ...resourceOwners(input), ...cdi(input)];
}

/** The Kubernetes project's CPU driver. */
const CPU_DRIVER = "dra.cpu";
/**
 * Whether a device is a mapping of the node's CPUs; an overhead is what a device uses additionally. kubernetes 1.37:
 * NodeAllocatableResource.
 */
const isOfCpus = ({ nodeAllocatableResources, nodeAllocatableResourceMappings }: SliceDevice): boolean =>
  fieldsOf(nodeAllocatableResources?.["cpu"])["mapping"] !== undefined ||
  nodeAllocatableResourceMappings?.["cpu"] !== undefined;

function cpuOwners({ snapshot, config }: LintInput): readonly LintFinding[] {
  if (config.cpuManagerPolicy !== "static") return [];
  const mapped = slicesHere(snapshot?.dra, snapshot?.node).filter(({ spec: { devices = [] } }) =>
    devices.some(isOfCpus),
  );
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

const driversHere = (snapshot: LintInput["snapshot"]): readonly string[] => [
  ...slicesHere(snapshot?.dra, snapshot?.node).map(({ spec }) => spec.driver),
  ...(snapshot?.dra?.drivers ?? []).map(({ name }) => name),
];

function resourceOwners({ snapshot, isOn }: LintInput): readonly LintFinding[] {
  if (snapshot === null) return [];
  const plugins = pluginResources(snapshot);
  const classes = isOn("DRAExtendedResource") ? (snapshot.dra?.deviceClasses ?? []) : [];
  const classed = new Set(classes.map(({ spec }) => spec?.extendedResourceName));
  const others = [...plugins].filter((resource) => !classed.has(resource)).sort();
  const byDriver = Map.groupBy(
    others.length === 0 ? [] : slicesHere(snapshot?.dra, snapshot?.node),
    ({ spec }) => spec.driver,
  );
  const shared = others.flatMap((resource) => sharedDevices(snapshot, resource, byDriver));
  return [...classesOfPlugins(snapshot, classes, plugins), ...shared];
}
/** The explanation of how it is known that a plugin has the resource. */
const ofPlugin = (snapshot: NodeSnapshot, resource: string): string =>
  reportsDevices(snapshot)
    ? `${resource} is given by a device plugin of this node`
    : `this node's status lists ${resource}, as of a device plugin`;
type NodeSnapshot = NonNullable<LintInput["snapshot"]>;

/** Attributes that identify a device, and that device plugins use as ids: a UUID or a PCI address. */
const IDENTITIES = ["uuid", "pciBusID", "pciAddress"];
function identitiesOf({ attributes = {} }: SliceDevice): readonly string[] {
  return Object.entries(attributes).flatMap(([name, value]) => {
    const text = fieldsOf(value)["string"];
    return IDENTITIES.includes(name.split("/").at(-1) as string) && typeof text === "string" ? [text] : [];
  });
}

/**
 * Finds device plugins' resources whose devices a DRA driver of this node has too: both list the same UUID or PCI
 * address. If either lists none, the driver's name is the resource's name reversed: gpu.nvidia.com for nvidia.com/gpu.
 * Devices that differ are divided between the two, which is fine.
 */
function sharedDevices(
  snapshot: NodeSnapshot,
  resource: string,
  byDriver: ReadonlyMap<string, readonly ResourceSlice[]>,
): readonly LintFinding[] {
  const [domain, label] = resource.split("/");
  // a device's replica has a number appended
  const ids = new Set(
    (snapshot.devices ?? []).flatMap((one) => (one.resource === resource ? [one.id.split("::")[0] as string] : [])),
  );
  return [...byDriver].flatMap(([driver, slices]) => {
    const devices = slices.flatMap(({ spec }) => spec.devices ?? []);
    const identities = devices.flatMap(identitiesOf);
    const both = identities.find((id) => ids.has(id));
    const areReported = identities.length > 0 && [...ids].some((id) => /[:-]/.test(id));
    const isNamesake = driver === `${label}.${domain}` && devices.length > 0 && !areReported;
    if (both === undefined && !isNamesake) return [];
    const which = both === undefined ? `devices of ${domain} here` : `device ${both}`;
    return [
      warning({
        code: "plugin-and-driver",
        field: 'featureGates["DynamicResourceAllocation"]',
        message: `${ofPlugin(snapshot, resource)}, and the DRA driver ${driver} has ${which} as well: neither knows what the other has given, and two pods may get one device`,
        advice: `let one of them have the devices of a node: stop the plugin where ${driver} runs, or leave them out of the driver`,
      }),
    ];
  });
}

function classesOfPlugins(
  snapshot: NodeSnapshot,
  classes: readonly DeviceClass[],
  plugins: ReadonlySet<string>,
): readonly LintFinding[] {
  return classes.flatMap(({ metadata, spec }) => {
    const resource = spec?.extendedResourceName;
    if (resource === undefined || !plugins.has(resource)) return [];
    return [
      warning({
        code: "plugin-and-driver",
        field: 'featureGates["DRAExtendedResource"]',
        message: `${ofPlugin(snapshot, resource)}, and DeviceClass ${metadata.name} stands for it too: a pod gets it of the plugin here, and of a DRA driver on other nodes`,
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
