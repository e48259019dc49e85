/**
 * The meanings of reason codes whose sentence is clear only beside its place in an answer, by the code. `<name>` is the number of that
 * name. INVARIANT: each name is a number that the code's sentence reads.
 */
export const PLAIN_MEANINGS: Readonly<Record<string, string>> = {
  all_cpus: "the cpuset has every CPU of the node: <because>",
  allocatable_raised: "<allocated> devices of the resource are in use, and the node's status never lists fewer",
  asked_again:
    "the pod is on the node already: it is checked as after a restart of the kubelet, with its allocated resources, and is not counted twice",
  attempt_missing: "the runtime does not report the attempt number of the container or the sandbox",
  below_threshold: "<available> is available, which is less than the threshold of <quantity>",
  best_effort: "the pod or the QoS tier is BestEffort: it gets the lowest CPU shares",
  candidates: "<candidates> pods may be preempted for the pod",
  capacity: "the machine has <quantity> of the resource",
  capacity_less_reserves:
    "allocatable is the capacity of <capacity> less kubeReserved (<kubeReserved>), systemReserved (<systemReserved>) and evictionHard (<evictionHard>)",
  capacity_zero:
    "the size of the image file system is 0: the kubelet reports an error and removes no image to free space",
  cfs_period: "the kernel counts CPU quotas in periods of <periodMicros> µs",
  checkpoint_entry_dropped: "the checkpoint's entry of container <container> is ignored: <fault> at <at>",
  claim_given_back: "no other pod uses the claim: its drivers are asked to unprepare it",
  claim_kept: "<pods> other pods still use the claim: no driver is called",
  claim_not_needed: "no claim was created for the entry <entry> of the pod: the kubelet skips the entry",
  claim_refused: "the claim cannot be prepared: <message>; the kubelet tries again at the pod's next sync",
  clock_ran_backwards: "the last pass was at <atMs>, which is later than this pass (<now>)",
  clock_stepped:
    "the node's clock was set ahead or back by <steppedMs> since the last pass: the remembered times are moved by the same amount, so that no age changes",
  container_image_not_listed: "<containers> containers use the image, which the runtime does not list",
  container_not_exited: "the container of the log has not exited: the log may only be in rotation",
  containerfs_overridden: "the kubelet sets the containerfs threshold itself: <warning>",
  created_in_future:
    "the creation time <createdAt> is after the snapshot: the container or the sandbox is never old enough",
  critical_pod: "the pod ranks before the others, and is skipped because it is critical",
  device_plugin_removed:
    "the kubelet has removed the device plugin: the node's status keeps the resource with 0 devices",
  devices_as_observed: "the snapshot lists no devices, so the node's own <quantity> is used",
  devices_given:
    "the container gets the devices <ids>; <from> is why these (reused, preferred, aligned, unaligned, no-affinity)",
  devices_not_known: "the CDI devices of container <container> are known once <drivers> has answered",
  done_without_plan: "`ask.done` reports a removal as <end> that this pass does not plan",
  driver_left_out: "no allocation result of <driver> in <claim> needs NodePrepareResources: the driver is not called",
  drivers_not_known: "the snapshot does not list the registered drivers: all drivers count as registered",
  enforce_node_allocatable: "enforceNodeAllocatable has <key>, so the cgroup gets limits",
  exclusive_cpus_given:
    "the container gets <count> exclusive CPUs (<cpus>) of NUMA node <numaNodes>, <reused> of which init containers of the pod had before; <reserved> stay reserved",
  first_in_rank: "the pod is the first in the ranking that is not critical",
  hints_merged:
    "the hints of <resources> merge to NUMA node <numaNodes>; <preferred> is whether the merged hint is preferred, <admitted> whether the pod is admitted",
  host_port_taken: "pod <by> uses <protocol> port <port> of <ip>",
  hugepages_from_limits: "the huge page limits are those of the container; page sizes without a limit get 0",
  hugepages_from_requests: "the huge page limits are the huge page requests of the pod",
  image_frees_space:
    "the image is in place <place> of the removal order, was last used <unusedMs> ago, and frees <sizeBytes>",
  image_id_invalid: "the image's id is not valid, so the image cannot be removed",
  image_in_use: "<users> containers, in any state, were created from the image",
  image_listed_twice: "the runtime lists the image more than once; <pinned> is whether it counts as pinned",
  image_mounted: "<users> containers mount the image as a volume",
  image_not_needed: "the images that are removed before the image free enough space",
  image_not_reached: "the pass ended before it reached the image",
  image_of_sandboxes:
    "the runtime starts sandboxes from the image and does not report it as pinned, the only property for which a kubelet keeps it",
  image_pinned: "the runtime reports the image as pinned",
  image_remembered: "the image was first seen at <firstDetectedAtMs> and last in use at <lastUsedAtMs>",
  image_removal_failed: "the runtime refused to remove the image: <message>",
  image_removal_stopped: "the pass stopped at the image: <message>",
  image_size_not_told: "the runtime does not report the size of the image, which counts as 0 bytes",
  image_too_old:
    "the image is in place <place> of the removal order and was last used <unusedMs> ago, which is longer than imageMaximumGCAge (<maxAgeMs>)",
  image_too_young: "the image was first seen <ageMs> ago, which is less than imageMinimumGCAge (<minAgeMs>)",
  image_unused:
    "the image is in place <place> of the removal order and was last used <unusedMs> ago; all unused images are removed",
  image_used_now: "the image was last in use at <lastUsedAtMs>, and this pass is at <atMs>",
  in_grace_period: "<graceLeftMs> of the threshold's grace period of <graceMs> are left",
  in_transition_period:
    "no threshold of the condition is met any more; the condition stays True until <untilMs> (evictionPressureTransitionPeriod)",
  kill_held: "the restart of the container is held from now on, for <holdSeconds> s at most: other containers fail too",
  kill_held_on: "the container failed again; its restart has been held for <heldForMs> of at most <holdSeconds> s",
  kill_not_held: "the container is restarted: too few containers fail together",
  largest_pod_not_searched: "the largest pod is not searched for on <numaNodes> NUMA nodes, which are more than 8",
  limit_from_memory: "<bytes> is the memory that is left to the cgroup",
  limit_from_process_ids: "<pidsLimit> process ids are left to the cgroup",
  limited_swap:
    "swapBehavior is LimitedSwap: the container gets the share of <swapCapacity> swap that its memory request (<request>) is of the node's memory (<nodeMemory>)",
  local_storage_limit:
    "the pod exceeds a local storage limit of its own (<cause>), so it is evicted even if the node is not short of a resource",
  maximum_age_waits:
    "no image is too old before <untilMs>: the node is watched since <beganAtMs>, and imageMaximumGCAge is <maxAgeMs>",
  memory_anywhere: "the container gets memory of any NUMA node: <because>",
  memory_from_limit: "the value comes from the memory limit of <bytes> of the container or the pod",
  memory_given: "the container gets <size> of NUMA node <numaNodes>",
  memory_high: "memory.high is at <factor> of the way from the request of <request> to <ceiling>",
  memory_manager: "the memory manager assigned NUMA node <numaNodes> to the container",
  memory_not_managed: "the memory manager considers no NUMA node of memory: <because>",
  memory_qos_off: "memory.high sets no throttling: the feature gate MemoryQoS is off",
  memory_reservation:
    "memoryReservationPolicy is <policy>, which determines whether memory.min or memory.low protects the requested <bytes>",
  memory_table:
    "<total> of the NUMA node less <systemReserved> for the system is <allocatable>, of which containers hold <reserved>",
  memory_unset: "the memory is unlimited: <because>",
  min_reclaim_not_reached:
    "the threshold was met, and the <available> available is less than <goal>, the threshold with its minimum reclaim of <minReclaim>",
  nearest:
    "of <among> <qos> pods, the requests of the pod are nearest to the amounts that are still to be freed (<open>): distance <distance>",
  no_stats_of_signal: "the signal was not observed: the stats have no <path>",
  no_swap: "the container gets no swap: <because>",
  node_level_first:
    "the node-level reclaim runs before any pod is evicted: <functions>; <afterNodeLevel> is whether it frees enough",
  not_reached: "the pass stopped at <stoppedAt>, before it reached the object",
  older_sandbox: "the sandbox is not ready and holds no container, and <newer> sandboxes of its pod are newer",
  oom_score_adj:
    "the value comes from the QoS class <qosClass>, the memory request and the node's memory of <memoryCapacity>",
  order_is_chance: "the kubelet's order of equal pods, images or thresholds is random; <others> may come first instead",
  over_container_limit:
    "the container has <dead> dead instances, of which <maxPerPodContainer> may stay: the oldest are removed",
  over_total_limit:
    "<total> dead containers are left on the node, of which <maxContainers> may stay: the oldest are removed",
  over_total_share:
    "the node has <total> dead containers, of which <maxContainers> may stay: <share> instances of each container of a pod",
  page_sizes_of_node: "the limits have every page size of the node; sizes without a limit of their own get <unnamed>",
  pages_left_out: "the limits leave out pages of <sizes>: <because>",
  part_of_claims:
    "ResourceClaims give <milliCpu>m of the cpu, or a number of bytes of another <resource>, that the value contains",
  pass_stopped: "the pass stopped at the object: <message>",
  pod_has_ended: "the phase of the pod is <phase>: the pod does not count, and is checked like a new pod",
  pod_without_stats: "the pod has no stats: it ranks before all pods that have stats",
  pods_enforced: "enforceNodeAllocatable has pods: the limits of kubepods are the capacity less the reservations",
  pods_from_configuration: "the number of pods follows from maxPods (<maxPods>) and podsPerCore (<podsPerCore>)",
  pods_not_enforced: "enforceNodeAllocatable does not have pods: the limits of kubepods are the whole capacity",
  preempted_in_vain: "<pods> pods are preempted in vain: <handler> refuses the pod after that",
  pressure_observed: "a threshold of the condition is met; the condition stays True until <untilMs> at least",
  qos_reserved: "qosReserved keeps <percent> % of the memory requests of the higher QoS tiers out of the <allocatable>",
  quota_off: "the cgroup gets no CPU quota: <because>",
  quota_unset: "the CPU time is unlimited: <because>",
  ready_once_started: "the container has no readiness probe: it is ready as long as it is started",
  reclaims_first: "the threshold is the most urgent one that is met: <resource> is reclaimed",
  refused: "the pod gets nothing: <manager> refuses it with the reason <reason>",
  released_calm: "the container failed again, and too few containers fail together now: it is restarted",
  released_gone: "the container is not probed any more: it is not killed",
  released_held_long_enough:
    "the container failed again after its restart was held for <holdSeconds> s: it is restarted",
  released_recovered: "the probe of the container succeeds again: it is not killed",
  removal_failed: "the runtime refused the removal: <message>",
  reserved_cpus: "CPUs <cpus> are reserved: <because>; <inSharedPool> is whether the shared pool has them too",
  resource_fits: "<requested> of the resource fits beside <used> used of <capacity>",
  resource_short: "<requested> of the resource does not fit beside <used> used of <capacity>",
  running: "the container is running",
  runtime_handler_differs:
    "a container of the runtime handler <handler> was created from the image, which the runtime lists for another handler",
  safe_since_kernel: "the sysctl counts as safe since kernel <since>; the node's kernel is <kernel>",
  sandbox_has_containers: "<containers> containers of the sandbox are still listed",
  sandbox_not_listed: "the runtime does not list <podSandboxId>, the sandbox of the container",
  sandbox_ready: "the sandbox is ready",
  shares_from_burstable_requests: "the pods of the tier request <milliCpu>m cpu",
  shares_from_cpu: "<milliCpu>m cpu are left to the cgroup",
  shares_from_limit: "the pod or the container requests no cpu: its limit of <milliCpu>m counts",
  shares_from_request: "the pod or the container requests <milliCpu>m cpu",
  slowest_detection:
    "a fault is noticed within <slowestFailureMs>: <failureThreshold> failures, one every <periodSeconds> s, each with a timeout of <timeoutSeconds> s",
  started_at_once: "the container has no startup probe: it is started as soon as it runs",
  stats_not_newer: "the stats are those of the last pass (<statsAtMs>): they cause no eviction in this pass",
  threshold_above_capacity: "the threshold of <quantity> is more than the capacity of <capacity>: it is always met",
  threshold_forgotten: "the threshold was met at the last pass and is no longer configured: its times are forgotten",
  tied: "the pods <tied> are equally near and equally large; a kubelet may preempt any of them, this answer names the last one listed",
  timer_off:
    "the high threshold is 100 % and no maximum age is set: the kubelet runs no timer for image garbage collection",
  too_young: "the container, the sandbox or the log is younger than <minAgeMs>",
  unhealthy_devices: "unhealthy devices do not count; if <plugin> is stopped, no device of the plugin counts",
  weight_from_shares:
    "the value is <cpuShares> CPU shares converted to the CPU weight of cgroup v2, by the <rule> rule",
  within_limits: "the container is one of <dead> dead containers that may stay, of which <newer> are newer",
};
