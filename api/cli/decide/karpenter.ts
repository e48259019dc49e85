import type { AllocatableDecision } from "../../model/allocatable.ts";

/**
 * A node's resources in the terms of Karpenter's InstanceType (sigs.k8s.io/karpenter, pkg/cloudprovider): the capacity, and the overhead in its
 * three parts. As there, allocatable is the capacity less all of the overhead, and its memory less the huge pages too.
 */
export const karpenterShape = ({ capacity, allocatable, reserved }: AllocatableDecision): object => ({
  capacity,
  overhead: {
    kubeReserved: reserved["kubeReserved"],
    systemReserved: reserved["systemReserved"],
    evictionThreshold: reserved["evictionHard"],
  },
  allocatable,
});
