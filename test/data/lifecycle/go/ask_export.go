package status

import v1 "k8s.io/api/core/v1"

// AskMerge is mergePodStatus.
func AskMerge(pod *v1.Pod, old, now v1.PodStatus, couldHaveRunning bool) v1.PodStatus {
	return mergePodStatus(pod, old, now, couldHaveRunning)
}
