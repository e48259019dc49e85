interface Disputed {
  readonly suite: string;
  readonly name: string;
}

/**
 * Cases whose answer is not a function of their input. In each, a pod has pod-level memory and overhead, and its quantity
 * was born in memory as a binary fraction (`1.5Gi`), or was compared with one, before the input was printed as `1536Mi`.
 * Such a Go quantity holds a pointer, and every call of PodRequests or PodLimits adds the overhead to the pod's own spec
 * once more; the answers hold what the second or third call saw. Go's functions of v0.36.3, given the printed JSON,
 * answer 1562Mi, 1562Mi, 1562Mi for case 40, and given `1.5Gi` 1562Mi, 1588Mi, 1614Mi. The core answers the printed input.
 */
export const DISPUTED: readonly Disputed[] = [
  ...[40, 86, 159, 183, 256, 334, 356].map((n) => ({ suite: "pod-resources", name: `pod-resources-20261-${n}` })),
  ...[20, 28, 40, 48, 209].map((n) => ({ suite: "qos-cgroups", name: `qos-cgroups-20261-${n}` })),
];
