/** The priority classes that every cluster has, and their values. kubernetes 1.36: scheduling.SystemPriorityClasses. */
export const SYSTEM_PRIORITY_CLASSES: ReadonlyMap<string, number> = new Map([
  ["system-cluster-critical", 2_000_000_000],
  ["system-node-critical", 2_000_001_000],
]);
