package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	noopoteltrace "go.opentelemetry.io/otel/trace/noop"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	critest "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	containertest "k8s.io/kubernetes/pkg/kubelet/container/testing"
	"k8s.io/kubernetes/pkg/kubelet/kuberuntime"
	"k8s.io/kubernetes/pkg/kubelet/logs"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
	"k8s.io/kubernetes/pkg/kubelet/runtimeclass"
)

func init() {
	suites["container-config"] = suite{answer: asking(askContainerConfig), times: 3}
	suites["container-gc"] = suite{answer: asking(askContainerGC), times: 5}
}

// criRuntime is a container runtime that remembers what it is told.
type criRuntime struct {
	*critest.FakeRuntimeService
	mu      sync.Mutex
	configs []*runtimeapi.ContainerConfig
	removed []string
}

func (r *criRuntime) CreateContainer(
	ctx context.Context, sandbox string, config *runtimeapi.ContainerConfig, of *runtimeapi.PodSandboxConfig,
) (string, error) {
	r.mu.Lock()
	r.configs = append(r.configs, config)
	r.mu.Unlock()
	return r.FakeRuntimeService.CreateContainer(ctx, sandbox, config, of)
}
func (r *criRuntime) RemoveContainer(ctx context.Context, id string) error {
	r.mu.Lock()
	r.removed = append(r.removed, id)
	r.mu.Unlock()
	return r.FakeRuntimeService.RemoveContainer(ctx, id)
}
func (r *criRuntime) RemovePodSandbox(ctx context.Context, id string) error {
	r.mu.Lock()
	r.removed = append(r.removed, "sandbox:"+id)
	r.mu.Unlock()
	return r.FakeRuntimeService.RemovePodSandbox(ctx, id)
}

// deletedPods are those whose containers may go.
type deletedPods []types.UID

func (deletedPods) IsPodTerminationRequested(types.UID) bool       { return false }
func (d deletedPods) ShouldPodContentBeRemoved(uid types.UID) bool { return slices.Contains(d, uid) }
func (d deletedPods) ShouldPodRuntimeBeRemoved(uid types.UID) bool { return slices.Contains(d, uid) }

type pulls struct{}

func (pulls) RecordImageStartedPulling(types.UID)  {}
func (pulls) RecordImageFinishedPulling(types.UID) {}

func backOff() *flowcontrol.Backoff { return flowcontrol.NewBackOff(time.Second, time.Minute) }

// manager makes the kubelet's runtime manager over this runtime, with its logs in a folder.
func (r *criRuntime) manager(
	dir string, deleted deletedPods, machine *MachineInfo, quota bool, period time.Duration,
) (kuberuntime.KubeGenericRuntime, error) {
	images := critest.NewFakeImageService()
	images.SetFakeImages([]string{"app", "app:latest"})
	args := []any{
		&record.FakeRecorder{}, results.NewManager(), results.NewManager(), results.NewManager(), dir, dir, machine, deleted, int32(110),
		kubecontainer.RealOS{}, &containertest.FakeRuntimeHelper{PodContainerDir: dir}, backOff(), false, "NeverVerify",
		quota, metav1.Duration{Duration: period}, r, images, cm.NewStubContainerManager(), logs.NewStubContainerLogManager(), runtimeclass.NewManager(nil),
	}
	args = append(args, ofVersion()...)
	args = append(args, func() v1.ResourceList { return v1.ResourceList{} }, pulls{}, noopoteltrace.NewTracerProvider())
	return first[kuberuntime.KubeGenericRuntime](call(kuberuntime.NewKubeGenericRuntimeManager, args...))
}

type containerConfigIn struct {
	Pod                     *v1.Pod
	CPUCFSQuota             bool
	CPUCFSQuotaPeriodMicros time.Duration
	NodeMemoryCapacityBytes uint64
}

func askContainerConfig(in containerConfigIn) (any, error) {
	return inFolder(func(dir string) (any, error) {
		r := &criRuntime{FakeRuntimeService: critest.NewFakeRuntimeService()}
		machine := &MachineInfo{MemoryCapacity: in.NodeMemoryCapacityBytes}
		m, err := r.manager(dir, nil, machine, in.CPUCFSQuota, in.CPUCFSQuotaPeriodMicros*time.Microsecond)
		if err != nil {
			return nil, err
		}
		for i := range in.Pod.Spec.Containers {
			in.Pod.Spec.Containers[i].ImagePullPolicy = v1.PullNever
		}
		status := &kubecontainer.PodStatus{ID: in.Pod.UID, Name: in.Pod.Name, Namespace: in.Pod.Namespace}
		result, err := first[kubecontainer.PodSyncResult](call(m.SyncPod, in.Pod, status, []v1.Secret{}, backOff()))
		if err != nil {
			return nil, err
		}
		if err := result.Error(); err != nil {
			return object{"error": err.Error()}, nil
		}
		containers := object{}
		for _, config := range r.configs {
			containers[config.GetMetadata().GetName()] = shownResources(config.GetLinux().GetResources())
		}
		return object{"containers": containers}, nil
	})
}

func shownResources(l *runtimeapi.LinuxContainerResources) object {
	pages := map[string]uint64{}
	for _, h := range l.GetHugepageLimits() {
		if h.Limit > 0 {
			pages[h.PageSize] = h.Limit
		}
	}
	return object{
		"cpuShares": l.GetCpuShares(), "cpuQuota": l.GetCpuQuota(), "cpuPeriod": l.GetCpuPeriod(), "memoryLimitBytes": l.GetMemoryLimitInBytes(),
		"oomScoreAdj": l.GetOomScoreAdj(), "hugepageLimits": pages,
	}
}

type containerGCIn struct {
	MinAgeMs                             time.Duration
	MaxPerPodContainer, MaxContainers    int
	AllSourcesReady, EvictNonDeletedPods bool
	DeletedPodUIDs                       deletedPods
	Containers                           []gcContainer
}
type gcContainer struct {
	ID, PodUID, Name string
	Attempt          uint32
	CreatedMsAgo     time.Duration
	State            string
}

func (c gcContainer) fake(now time.Time) (*critest.FakeContainer, error) {
	states := map[string]runtimeapi.ContainerState{
		"exited": runtimeapi.ContainerState_CONTAINER_EXITED, "running": runtimeapi.ContainerState_CONTAINER_RUNNING,
		"created": runtimeapi.ContainerState_CONTAINER_CREATED, "unknown": runtimeapi.ContainerState_CONTAINER_UNKNOWN,
	}
	state, ok := states[c.State]
	if !ok {
		return nil, fmt.Errorf("there is no state %q", c.State)
	}
	return &critest.FakeContainer{SandboxID: "sandbox-" + c.PodUID, ContainerStatus: runtimeapi.ContainerStatus{
		Id: c.ID, Metadata: &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: c.Attempt}, State: state,
		CreatedAt: now.Add(-c.CreatedMsAgo * time.Millisecond).UnixNano(), Image: &runtimeapi.ImageSpec{Image: "app"},
		Labels: map[string]string{
			"io.kubernetes.pod.name": "pod-" + c.PodUID, "io.kubernetes.pod.namespace": "default",
			"io.kubernetes.pod.uid": c.PodUID, "io.kubernetes.container.name": c.Name,
		},
		Annotations: map[string]string{
			"io.kubernetes.container.hash": "1", "io.kubernetes.container.restartCount": fmt.Sprint(c.Attempt),
			"io.kubernetes.container.terminationMessagePath": "", "io.kubernetes.container.terminationMessagePolicy": "File",
			"io.kubernetes.pod.terminationGracePeriod": "0",
		},
	}}, nil
}

func askContainerGC(in containerGCIn) (any, error) {
	return inFolder(func(dir string) (any, error) {
		r := &criRuntime{FakeRuntimeService: critest.NewFakeRuntimeService()}
		m, err := r.manager(dir, in.DeletedPodUIDs, &MachineInfo{MemoryCapacity: 8 << 30}, true, 100*time.Millisecond)
		if err != nil {
			return nil, err
		}
		now := time.Now()
		var containers []*critest.FakeContainer
		for _, c := range in.Containers {
			fake, err := c.fake(now)
			if err != nil {
				return nil, err
			}
			containers = append(containers, fake)
		}
		r.SetFakeContainers(containers)
		policy := kubecontainer.GCPolicy{MinAge: in.MinAgeMs * time.Millisecond, MaxPerPodContainer: in.MaxPerPodContainer, MaxContainers: in.MaxContainers}
		_, err = call(m.GarbageCollect, policy, in.AllSourcesReady, in.EvictNonDeletedPods)
		removed := append([]string{}, r.removed...)
		slices.Sort(removed)
		out := object{"removed": removed}
		if err != nil {
			out["error"] = err.Error()
		}
		return out, nil
	})
}
