interface StatusOfContainer {
  readonly state?: { readonly terminated?: unknown };
}
interface PodWithStatus {
  readonly status: {
    readonly containerStatuses?: readonly StatusOfContainer[];
    readonly initContainerStatuses?: readonly StatusOfContainer[];
  };
}

/**
 * Pods as a pass over the cgroups is told them: of a container that has ended nothing, as of one that is yet to start. A
 * decision has no values for one that is over, and it may start again at any moment.
 */
export const podsOfPass = (pods: readonly unknown[]): readonly unknown[] =>
  pods.map((pod) => {
    const { status } = pod as PodWithStatus;
    const { containerStatuses, initContainerStatuses } = status;
    return {
      ...(pod as object),
      status: {
        ...status,
        ...(containerStatuses !== undefined && { containerStatuses: containerStatuses.filter(hasNotEnded) }),
        ...(initContainerStatuses !== undefined && {
          initContainerStatuses: initContainerStatuses.filter(hasNotEnded),
        }),
      },
    };
  });

const hasNotEnded = ({ state }: StatusOfContainer): boolean =>
  state?.terminated === undefined || state.terminated === null;
