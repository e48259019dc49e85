package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	apitest "k8s.io/cri-api/pkg/apis/testing"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	containertest "k8s.io/kubernetes/pkg/kubelet/container/testing"
)

type actuationIn struct {
	Configuration configuration `json:"kubeletConfiguration"`
	Pod           *v1.Pod       `json:"pod"`
	// The resources in force.
	Before granted `json:"before"`
	// Containers that run.
	Running []string `json:"running"`
	// Bytes of memory in use by the pod ("") and by container; a name that is missing: it is not known.
	Usage map[string]uint64 `json:"usage"`
	// Whether it is as on cgroup v2; allocatable memory is then 14 GiB, and swap 4 GiB.
	Unified bool `json:"unified,omitempty"`
	// Containers that have CPUs of their own.
	Exclusive []string `json:"exclusive,omitempty"`
	// Containers that were not made yet.
	Unmade []string `json:"unmade,omitempty"`
	// Whether limits of huge pages are told; the machine has pages of 2 MiB and 1 GiB.
	HugePages bool `json:"hugePages,omitempty"`
}

// One thing that is done: a container is stopped or made, values of a pod's cgroup ("") or a container's are written, or a volume gets
// another size.
type step struct {
	Stop   string           `json:"stop,omitempty"`
	Start  string           `json:"start,omitempty"`
	Of     *string          `json:"of,omitempty"`
	Values map[string]int64 `json:"values,omitempty"`
	// By the size of a page, as the runtime is told it.
	HugePages map[string]uint64 `json:"hugePages,omitempty"`
	Volume    string            `json:"volume,omitempty"`
	Bytes     int64             `json:"bytes,omitempty"`
}
type actuationOut struct {
	Steps []step `json:"steps"`
	Error string `json:"error"`
}

func genActuation(r *rand.Rand, i int) any {
	x := actuationIn{Usage: map[string]uint64{}}
	if r.Intn(8) == 0 {
		off := false
		x.Configuration.CPUCFSQuota = &off
	}
	x.Pod, x.Before = makePod(r, i, true, podLevelIsResized, 2000, 1024)
	limitOf := func(q v1.ResourceRequirements) uint64 { return uint64(q.Limits.Memory().Value()) }
	total := uint64(0)
	for _, list := range [][]v1.Container{x.Pod.Spec.InitContainers, x.Pod.Spec.Containers} {
		for _, c := range list {
			if r.Intn(8) > 0 {
				x.Running = append(x.Running, c.Name)
			}
			q := x.Before.ContainerResources[c.Name]
			use := pick(r, limitOf(q)/8, limitOf(q)/2, limitOf(q)*7/8, 64<<20)
			total += use
			if r.Intn(10) > 0 {
				x.Usage[c.Name] = use
			}
		}
	}
	if len(x.Running) == 0 {
		x.Running = []string{x.Pod.Spec.Containers[0].Name}
	}
	// a kubelet that does not know it ends itself where a container is above its new limit
	x.Usage[""] = total
	return x
}

func genUnified(r *rand.Rand, i int) any {
	x := genActuation(r, i).(actuationIn)
	x.Unified = true
	c := &x.Configuration
	one := r.Intn(2) == 0
	c.SingleProcessOOMKill = &one
	isOn := r.Intn(5) > 0
	c.FeatureGates = map[string]bool{"MemoryQoS": isOn}
	if quotaMayBeLeft && r.Intn(4) == 0 {
		c.FeatureGates["DisableCPUQuotaWithExclusiveCPUs"] = false
	}
	if isOn {
		factor := pick(r, 0.9, 0.9, 0.5, 0.333)
		c.MemoryThrottlingFactor = &factor
		if factorMayLack && r.Intn(3) == 0 {
			c.MemoryThrottlingFactor = nil
		}
		c.MemoryReservationPolicy = pick(r, reservations...)
	}
	if r.Intn(3) == 0 {
		// memory of containers that swap is not resized
		c.MemorySwap = map[string]string{"swapBehavior": "LimitedSwap"}
		for _, list := range [][]v1.Container{x.Pod.Spec.InitContainers, x.Pod.Spec.Containers} {
			for _, k := range list {
				before := x.Before.ContainerResources[k.Name]
				for after, then := range map[*v1.ResourceList]v1.ResourceList{&k.Resources.Requests: before.Requests, &k.Resources.Limits: before.Limits} {
					if memory, ok := then["memory"]; ok {
						(*after)["memory"] = memory
					}
				}
			}
		}
	}
	if r.Intn(2) == 0 && qos.GetPodQOS(x.Pod) == v1.PodQOSGuaranteed {
		for _, k := range x.Pod.Spec.Containers {
			if r.Intn(2) == 0 {
				x.Exclusive = append(x.Exclusive, k.Name)
			}
		}
	}
	if r.Intn(6) == 0 {
		priority := int32(2000001000)
		x.Pod.Spec.Priority = &priority
	}
	return x
}

// genHugePages makes containers and pods with huge pages, which do not change.
func genHugePages(r *rand.Rand, i int) any {
	x := genActuation(r, i).(actuationIn)
	x.HugePages = true
	add := func(q *v1.ResourceRequirements) {
		if q.Limits == nil {
			q.Limits = v1.ResourceList{}
		}
		q.Limits[pick(r, v1.ResourceName("hugepages-2Mi"), "hugepages-1Gi")] = quantity(pick(r, "1Gi", "2Gi"))
	}
	for _, list := range [][]v1.Container{x.Pod.Spec.InitContainers, x.Pod.Spec.Containers} {
		for n := range list {
			if r.Intn(2) == 0 {
				add(&list[n].Resources)
				before := x.Before.ContainerResources[list[n].Name]
				if before.Limits == nil {
					before.Limits = v1.ResourceList{}
				}
				for name, amount := range list[n].Resources.Limits {
					if name != "cpu" && name != "memory" {
						before.Limits[name] = amount
					}
				}
				x.Before.ContainerResources[list[n].Name] = before
			}
		}
	}
	if q := x.Pod.Spec.Resources; q != nil && r.Intn(2) == 0 {
		add(q)
		if x.Before.PodLevelResources.Limits == nil {
			x.Before.PodLevelResources.Limits = v1.ResourceList{}
		}
		for name, amount := range q.Limits {
			if name != "cpu" && name != "memory" {
				x.Before.PodLevelResources.Limits[name] = amount
			}
		}
	}
	return x
}

// genMounts makes volumes in memory that grow and shrink beside containers.
func genMounts(r *rand.Rand, i int) any {
	x := genActuation(r, i).(actuationIn)
	x.Unified = true
	on := volumesAreResized && r.Intn(5) > 0
	x.Configuration.FeatureGates = map[string]bool{"MemoryQoS": false}
	if volumesAreResized {
		x.Configuration.FeatureGates["InPlacePodVerticalScalingMemoryBackedVolumes"] = on
	}
	addVolumes(r, &x.Pod.Spec, 0.9)
	if r.Intn(4) == 0 {
		*x.Pod = *x.Before.of(x.Pod)
	}
	for _, v := range x.Pod.Spec.Volumes {
		if limit := v.EmptyDir.SizeLimit; on && limit != nil && !limit.IsZero() && v.EmptyDir.Medium == v1.StorageMediumMemory {
			if x.Before.EmptyDirVolumeLimits == nil {
				x.Before.EmptyDirVolumeLimits = map[string]*resource.Quantity{}
			}
			was := pick(r, *limit, mebi(r, 512), mebi(r, 512))
			x.Before.EmptyDirVolumeLimits[v.Name] = &was
		}
	}
	return x
}

// genInits makes pods of which a plain init container runs: those before it are through or sidecars, those after it were not made yet.
func genInits(r *rand.Rand, i int) any {
	x := genActuation(r, i).(actuationIn)
	always := v1.ContainerRestartPolicyAlways
	class := pick(r, "g", "b", "b")
	if qos.GetPodQOS(x.Pod) == v1.PodQOSGuaranteed {
		class = "g"
	}
	x.Running, x.Unmade = nil, nil
	total := uint64(0)
	inits := x.Pod.Spec.InitContainers
	for n := 0; n < 1+r.Intn(3); n++ {
		name := fmt.Sprintf("i%d", n)
		before := resourcesOf(r, class, 2000, 1024)
		x.Before.ContainerResources[name] = before
		c := v1.Container{Name: name, Image: "app", Resources: resized(r, class, before)}
		if r.Intn(3) == 0 {
			c.RestartPolicy, c.ResizePolicy = &always, policies(r)
		}
		inits = append(inits, c)
	}
	x.Pod.Spec.InitContainers = inits
	at := r.Intn(len(inits))
	for n, c := range inits {
		isSidecar := c.RestartPolicy != nil
		switch {
		case n > at:
			x.Unmade = append(x.Unmade, c.Name)
		case n == at || (isSidecar && r.Intn(6) > 0):
			x.Running = append(x.Running, c.Name)
			q := x.Before.ContainerResources[c.Name]
			limit := q.Limits.Memory().Value()
			use := pick(r, uint64(limit)/8, uint64(limit)/2, uint64(limit)*7/8, 64<<20)
			total += use
			if r.Intn(10) > 0 {
				x.Usage[c.Name] = use
			}
		}
	}
	for _, c := range x.Pod.Spec.Containers {
		x.Unmade = append(x.Unmade, c.Name)
		delete(x.Usage, c.Name)
	}
	x.Usage[""] = total
	return x
}

// bytesIn reads files of cgroup v2 as numbers, "max" as -1, under the names of values.
func bytesIn(unified map[string]string, values map[string]int64) {
	for file, name := range map[string]string{"memory.min": "memoryMin", "memory.low": "memoryLow", "memory.high": "memoryHigh", "memory.swap.max": "memorySwap", "memory.oom.group": "memoryOomGroup"} {
		if text, ok := unified[file]; ok {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				n = -1
			}
			values[name] = n
		}
	}
}

// The cgroup of one pod: what was written to it last.
type podCgroups struct {
	cm.PodContainerManager
	now  cm.ResourceConfig
	told func(step)
}

func (p *podCgroups) GetPodCgroupConfig(*v1.Pod, v1.ResourceName) (*cm.ResourceConfig, error) {
	c := p.now
	return &c, nil
}
func (p *podCgroups) write(c *cm.ResourceConfig) {
	values := map[string]int64{}
	if c.Memory != nil {
		values["memory"], p.now.Memory = *c.Memory, c.Memory
	}
	if c.CPUShares != nil {
		values["cpuShares"], p.now.CPUShares = int64(*c.CPUShares), c.CPUShares
	}
	if c.CPUQuota != nil {
		values["cpuQuota"], p.now.CPUQuota = *c.CPUQuota, c.CPUQuota
	}
	if c.CPUPeriod != nil {
		values["cpuPeriod"], p.now.CPUPeriod = int64(*c.CPUPeriod), c.CPUPeriod
	}
	bytesIn(c.Unified, values)
	of := ""
	p.told(step{Of: &of, Values: values})
}

// The runtime: nothing but a list of what it is told.
type recordingRuntime struct {
	*apitest.FakeRuntimeService
	told func(step)
	// those that do not run are started as well, which is no part of a resize
	stopped map[string]bool
	// whether limits of huge pages are told
	hugePages bool
}

func (r *recordingRuntime) UpdateContainerResources(_ context.Context, id string, c *runtimeapi.ContainerResources) error {
	l := c.GetLinux()
	values := map[string]int64{"cpuShares": l.CpuShares, "cpuQuota": l.CpuQuota, "cpuPeriod": l.CpuPeriod, "memory": l.MemoryLimitInBytes}
	for name, value := range values {
		if value == 0 {
			delete(values, name)
		}
	}
	bytesIn(l.Unified, values)
	s := step{Of: &id, Values: values}
	if r.hugePages {
		s.HugePages = map[string]uint64{}
		for _, limit := range l.HugepageLimits {
			s.HugePages[limit.PageSize] = limit.Limit
		}
	}
	r.told(s)
	return nil
}
func (r *recordingRuntime) StopContainer(_ context.Context, id string, _ int64) error {
	r.stopped[id] = true
	r.told(step{Stop: id})
	return nil
}
func (r *recordingRuntime) CreateContainer(ctx context.Context, sandbox string, c *runtimeapi.ContainerConfig, s *runtimeapi.PodSandboxConfig) (string, error) {
	if name := c.GetMetadata().GetName(); r.stopped[name] {
		r.told(step{Start: name})
	}
	return r.FakeRuntimeService.CreateContainer(ctx, sandbox, c, s)
}

// What a runtime asks of the kubelet, which takes down sizes of volumes.
type runtimeHelper struct {
	*containertest.FakeRuntimeHelper
	told func(step)
}

func (h runtimeHelper) ResizeEphemeralVolume(_ *v1.Pod, name string, size *resource.Quantity) error {
	h.told(step{Volume: name, Bytes: size.Value()})
	return nil
}

func statusOf(pod *v1.Pod, running, unmade []string) *kubecontainer.PodStatus {
	s := &kubecontainer.PodStatus{ID: pod.UID, Name: pod.Name, Namespace: pod.Namespace, IPs: []string{"10.0.0.1"}}
	s.SandboxStatuses = []*runtimeapi.PodSandboxStatus{{Id: "sandbox", State: runtimeapi.PodSandboxState_SANDBOX_READY, Metadata: &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID)},
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.0.0.1"}, Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{}}}}}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if slices.Contains(unmade, list[i].Name) {
				continue
			}
			k := &kubecontainer.Status{ID: kubecontainer.ContainerID{Type: "test", ID: list[i].Name}, Name: list[i].Name, Hash: kubecontainer.HashContainer(&list[i]), State: kubecontainer.ContainerStateExited, FinishedAt: time.Now()}
			if slices.Contains(running, k.Name) {
				k.State = kubecontainer.ContainerStateRunning
			}
			s.ContainerStatuses = append(s.ContainerStatuses, k)
		}
	}
	activate(s)
	return s
}

func askActuation(b []byte) any {
	var x actuationIn
	if err := json.Unmarshal(b, &x); err != nil {
		panic(err)
	}
	out := actuationOut{Steps: []step{}}
	tell := func(step) {}
	told := func(s step) { tell(s) }
	defer freshRoot()()
	fakes := apitest.NewFakeRuntimeService()
	runtimeService := &recordingRuntime{fakes, told, map[string]bool{}, x.HugePages}
	defer setGates(gatesAsTheyWere(x.Configuration.FeatureGates))
	setGates(x.Configuration.FeatureGates)
	isCgroup2UnifiedMode = func() bool { return false }
	quota := x.Configuration.CPUCFSQuota == nil || *x.Configuration.CPUCFSQuota
	if len(x.Exclusive) > 0 && utilfeature.DefaultFeatureGate.Enabled("DisableCPUQuotaWithExclusiveCPUs") {
		quota = false
	}
	before := x.Before.of(x.Pod)
	// a cgroup that was made as the kubelet makes it; without limits it reads as the kernel has it
	unlimited, none := int64(math.MaxInt64/4096*4096), int64(-1)
	pods := &podCgroups{now: *configOf(before, quota), told: told}
	if pods.now.Memory == nil {
		pods.now.Memory = &unlimited
	}
	if pods.now.CPUQuota == nil {
		pods.now.CPUQuota = &none
	}
	manager := recordingManager{cm.NewStubContainerManager(), cm.NodeConfig{}, pods, sets.New(x.Exclusive...)}
	helper := runtimeHelper{&containertest.FakeRuntimeHelper{PodContainerDir: root, PodStats: map[types.UID]*statsapi.PodStats{}}, told}
	runtime := newRuntime(x.Configuration, manager, runtimeService, helper)
	if x.Unified {
		// the swap controller is looked for once, as this machine has it
		runtime.GetContainerSwapBehavior(x.Pod, &x.Pod.Spec.Containers[0])
		isCgroup2UnifiedMode = func() bool { return true }
	}
	none0 := uint64(0)
	stats := func(usage map[string]uint64, all bool) *statsapi.PodStats {
		memory := func(name string) *statsapi.MemoryStats {
			if n, ok := usage[name]; ok {
				return &statsapi.MemoryStats{UsageBytes: &n}
			}
			if all {
				return &statsapi.MemoryStats{UsageBytes: &none0}
			}
			return &statsapi.MemoryStats{}
		}
		s := &statsapi.PodStats{Memory: memory("")}
		for _, list := range [][]v1.Container{x.Pod.Spec.InitContainers, x.Pod.Spec.Containers} {
			for _, c := range list {
				s.Containers = append(s.Containers, statsapi.ContainerStats{Name: c.Name, Memory: memory(c.Name)})
			}
		}
		return s
	}
	// the first sync makes the runtime manager know what is in force
	for _, list := range [][]v1.Container{before.Spec.InitContainers, before.Spec.Containers} {
		for i := range list {
			list[i].ResizePolicy = nil
		}
	}
	helper.PodStats[x.Pod.UID] = stats(nil, true)
	if r := syncPod(runtime, before, statusOf(before, x.Running, x.Unmade)); r.Error() != nil {
		panic(r.Error())
	}
	tell = func(s step) { out.Steps = append(out.Steps, s) }
	helper.PodStats[x.Pod.UID] = stats(x.Usage, false)
	result := syncPod(runtime, x.Pod, statusOf(x.Pod, x.Running, x.Unmade))
	for _, r := range result.SyncResults {
		if r.Action == kubecontainer.ResizePodInPlace && r.Error != nil {
			out.Error = r.Message
		}
	}
	return out
}

func allocatable() v1.ResourceList { return list(map[string]string{"memory": "14Gi"}) }

func (c configuration) factor() float64 {
	if c.MemoryThrottlingFactor == nil {
		return 0.9
	}
	return *c.MemoryThrottlingFactor
}

type podStates struct{}

func (podStates) IsPodTerminationRequested(types.UID) bool { return false }
func (podStates) ShouldPodContentBeRemoved(types.UID) bool { return false }
func (podStates) ShouldPodRuntimeBeRemoved(types.UID) bool { return false }

// Kubelets before 1.36 record no init containers.
type noTimes struct{}

func (noTimes) RecordImageStartedPulling(types.UID)              {}
func (noTimes) RecordImageFinishedPulling(types.UID)             {}
func (noTimes) RecordInitContainerStarted(types.UID, time.Time)  {}
func (noTimes) RecordInitContainerFinished(types.UID, time.Time) {}
