import type { ResourceSlice } from "../../model/resource-claim.ts";
import { error, type LintFinding, warning } from "./finding.ts";
import type { LintInput } from "./input.ts";

/** Finds what has two owners on a node with DRA drivers, and what the runtime does not do for them. */
export function draFindings(input: LintInput): readonly LintFinding[] {
  return [...cpuOwners(input), ...resourceOwners(input), ...cdi(input)];
}

/** A driver whose devices are CPUs says so by its name, such as dra.cpu, or by what its devices take of the node. */
const givesCpus = ({ spec: { driver, devices = [] } }: ResourceSlice): boolean =>
  /(?:^|[.-])cpus?(?:[.-]|$)/.test(driver) ||
  devices.some(({ nodeAllocatableResources = {} }) => Object.hasOwn(nodeAllocatableResources, "cpu"));

function cpuOwners({ snapshot, config }: LintInput): readonly LintFinding[] {
  if (config.cpuManagerPolicy !== "static") return [];
  const drivers = new Set(
    slicesHere(snapshot)
      .filter(givesCpus)
      .map(({ spec }) => spec.driver),
  );
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
  const drivers = [
    ...slicesHere(snapshot).map(({ spec }) => spec.driver),
    ...(snapshot?.dra?.drivers ?? []).map(({ name }) => name),
  ];
  const [driver] = drivers.sort();
  if (enabled !== false || driver === undefined) return [];
  return [
    error({
      code: "cdi-off",
      field: "containerRuntimeEndpoint",
      message: `the runtime has CDI off (enable_cdi), and the DRA driver ${driver} gives its devices as CDI devices: containers with claims do not start`,
      advice: "set enable_cdi = true in containerd's CRI plugin (its default from 2.0 on), and restart containerd",
    }),
  ];
}
