package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"sort"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/config"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	kubepod "k8s.io/kubernetes/pkg/kubelet/pod"
	"k8s.io/kubernetes/pkg/kubelet/preemption"
	"k8s.io/kubernetes/pkg/kubelet/status"
	statustest "k8s.io/kubernetes/pkg/kubelet/status/testing"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"
)

type queueIn struct {
	Configuration configuration      `json:"kubeletConfiguration"`
	Node          *v1.Node           `json:"node"`
	Pods          []*v1.Pod          `json:"pods"`
	Allocated     map[string]granted `json:"allocated"`
	// in the order in which they were asked for
	Pushed []string `json:"pushed"`
	// 2 where it is absent
	CgroupVersion int `json:"cgroupVersion,omitempty"`
}
type resizeOut struct {
	Pod     string `json:"pod"`
	Status  string `json:"status"`
	Message string `json:"message"`
}
type queueOut struct {
	// in the order in which they were tried
	Resizes   []resizeOut `json:"resizes"`
	Preempted []string    `json:"preempted,omitempty"`
}

// newQueue makes a node without pods.
func newQueue(r *rand.Rand) *queueIn {
	x := &queueIn{Allocated: map[string]granted{}}
	c := &x.Configuration
	c.CPUManagerPolicy = pick(r, "", "", "", "static")
	c.MemoryManagerPolicy = pick(r, "", "", "", "Static")
	if r.Intn(3) == 0 {
		c.MemorySwap = map[string]string{"swapBehavior": pick(r, "LimitedSwap", "LimitedSwap", "NoSwap")}
	}
	c.FeatureGates = pick(r, gatesTried...)
	c.KubeReserved = map[string]string{"cpu": pick(r, "100m", "1"), "memory": pick(r, "256Mi", "1Gi")}
	capacity := map[string]string{"cpu": pick(r, "4", "8", "16"), "memory": pick(r, "4Gi", "8Gi", "16Gi"), "pods": "110"}
	x.Node = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"kubernetes.io/os": "linux"}}}
	x.Node.Status.Capacity = list(capacity)
	x.Node.Status.Allocatable = list(capacity)
	for _, name := range []v1.ResourceName{"cpu", "memory"} {
		a := x.Node.Status.Allocatable[name]
		a.Sub(quantity(c.KubeReserved[string(name)]))
		if name == "memory" {
			a.Sub(quantity("100Mi"))
		}
		x.Node.Status.Allocatable[name] = a
	}
	return x
}

// addPods makes pods, most of which are to be resized.
func (x *queueIn) addPods(r *rand.Rand, count int) {
	ages := r.Perm(count)
	for i := 0; i < count; i++ {
		asked := r.Intn(5) > 0
		pod, a := makePod(r, i, asked, true, pick(r, 500, 1500, 4000), pick(r, 512, 1024, 4096))
		pod.Spec.NodeName = "n"
		if r.Intn(3) == 0 {
			p := pick(r, int32(-5), 0, 10, 1000)
			pod.Spec.Priority = &p
		} else if r.Intn(12) == 0 {
			p := int32(2000001000)
			pod.Spec.Priority = &p
		}
		if r.Intn(12) == 0 {
			pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		}
		pod.Status.Phase = v1.PodRunning
		for _, k := range pod.Spec.Containers {
			b := a.ContainerResources[k.Name]
			s := v1.ContainerStatus{Name: k.Name, ContainerID: "containerd://" + pod.Name + k.Name, Resources: b.DeepCopy(), AllocatedResources: b.Requests.DeepCopy()}
			s.State.Running = &v1.ContainerStateRunning{}
			if r.Intn(3) > 0 {
				pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, s)
			}
		}
		if asked && r.Intn(2) == 0 {
			since := metav1.NewTime(time.Date(2026, 1, 1, 0, ages[i], 0, 0, time.UTC))
			pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Status: "True", Reason: "Deferred", Message: "before", LastTransitionTime: since}}
		}
		x.Pods = append(x.Pods, pod)
		x.Allocated[string(pod.UID)] = a
		if asked || r.Intn(3) == 0 {
			x.Pushed = append(x.Pushed, pod.Name)
		}
	}
	if len(x.Pushed) == 0 {
		x.Pushed = []string{"p0"}
	}
	r.Shuffle(len(x.Pushed), func(i, j int) { x.Pushed[i], x.Pushed[j] = x.Pushed[j], x.Pushed[i] })
}

func genQueue(r *rand.Rand, _ int) any {
	x := newQueue(r)
	x.addPods(r, 2+r.Intn(7))
	return x
}

// genCrowd makes more resizes than Go sorts by insertion, beside pods to which nothing is allocated yet.
func genCrowd(r *rand.Rand, _ int) any {
	x := newQueue(r)
	x.addPods(r, 14+r.Intn(pick(r, 10, 30, 100)))
	pushed := sets.New(x.Pushed...)
	for _, p := range x.Pods {
		if !pushed.Has(p.Name) && r.Intn(3) > 0 {
			delete(x.Allocated, string(p.UID))
			p.Status = v1.PodStatus{Phase: v1.PodPending}
		}
	}
	return x
}

// genVolumes makes pods with volumes in memory, and other limits that are asked for.
func genVolumes(r *rand.Rand, i int) any {
	x := genQueue(r, i).(*queueIn)
	on := volumesAreResized && r.Intn(4) > 0
	gates := map[string]bool{}
	if volumesAreResized {
		gates["InPlacePodVerticalScalingMemoryBackedVolumes"] = on
	}
	for name, value := range x.Configuration.FeatureGates {
		gates[name] = value
	}
	x.Configuration.FeatureGates = gates
	x.CgroupVersion = pick(r, 2, 2, 1)
	pushed := sets.New(x.Pushed...)
	for _, p := range x.Pods {
		addVolumes(r, &p.Spec, 0.9)
		a := x.Allocated[string(p.UID)]
		if r.Intn(3) == 0 {
			// nothing but volumes changes
			*p = *a.of(p)
		}
		for _, v := range p.Spec.Volumes {
			if limit := v.EmptyDir.SizeLimit; on && limit != nil && !limit.IsZero() && v.EmptyDir.Medium == v1.StorageMediumMemory && r.Intn(6) > 0 {
				if a.EmptyDirVolumeLimits == nil {
					a.EmptyDirVolumeLimits = map[string]*resource.Quantity{}
				}
				was := pick(r, *limit, mebi(r, 512))
				a.EmptyDirVolumeLimits[v.Name] = &was
				if !pushed.Has(p.Name) && was.Cmp(*limit) != 0 {
					pushed.Insert(p.Name)
					x.Pushed = append(x.Pushed, p.Name)
				}
			}
		}
		x.Allocated[string(p.UID)] = a
	}
	return x
}

func askQueue(b []byte) any {
	var x queueIn
	if err := json.Unmarshal(b, &x); err != nil {
		panic(err)
	}
	if x.CgroupVersion == 0 {
		x.CgroupVersion = 2
	}
	defer setGates(gatesAsTheyWere(x.Configuration.FeatureGates))
	setGates(x.Configuration.FeatureGates)
	defer freshRoot()()
	ended := sets.New[types.UID]()
	active := func() []*v1.Pod {
		var l []*v1.Pod
		for _, p := range x.Pods {
			if !ended.Has(p.UID) {
				l = append(l, p)
			}
		}
		return l
	}
	var order []string
	retrying := false
	byUID := func(uid types.UID) (*v1.Pod, bool) {
		for _, p := range x.Pods {
			if p.UID == uid {
				if retrying {
					order = append(order, p.Name)
				}
				return p, true
			}
		}
		return nil, false
	}
	statuses := status.NewManager(fake.NewSimpleClientset(), kubepod.NewBasicPodManager(), &statustest.FakePodDeletionSafetyProvider{}, kubeletutil.NewPodStartupLatencyTracker())
	manager := recordingManager{cm.NewStubContainerManager(), cm.NodeConfig{CPUManagerPolicy: x.Configuration.CPUManagerPolicy, MemoryManagerPolicy: x.Configuration.MemoryManagerPolicy, CgroupVersion: x.CgroupVersion}, nil, nil}
	absolute := x.Node.Status.Capacity.DeepCopy()
	for name, reserved := range list(x.Configuration.KubeReserved) {
		a := absolute[name]
		a.Sub(reserved)
		absolute[name] = a
	}
	// the swap controller is looked for once, as this machine has it
	isCgroup2UnifiedMode = func() bool { return false }
	runtime := newRuntime(x.Configuration, manager, nil, nil)
	runtime.GetContainerSwapBehavior(x.Pods[0], &x.Pods[0].Spec.Containers[0])
	isCgroup2UnifiedMode = func() bool { return x.CgroupVersion == 2 }
	var out queueOut
	kill := func(pod *v1.Pod, _ bool, _ *int64, _ func(*v1.PodStatus)) error {
		ended.Insert(pod.UID)
		out.Preempted = append(out.Preempted, pod.Name)
		return nil
	}
	var allocator allocations
	allocatedPods := func() []*v1.Pod {
		var l []*v1.Pod
		for _, p := range active() {
			q, _ := allocator.UpdatePodFromAllocation(p)
			l = append(l, q)
		}
		return l
	}
	recorder := &record.FakeRecorder{}
	sources := config.NewSourcesReady(func(sets.Set[string]) bool { return true })
	critical := preemption.NewCriticalPodAdmissionHandler(allocatedPods, kill, recorder)
	allocator = newAllocations(allocationParts{manager, absolute, statuses, active, byUID, sources, recorder, runtime, critical, x.Node})
	waiting := append([]*v1.Pod{}, x.Pods...)
	sort.Slice(waiting, func(i, j int) bool { return since(waiting[i]).Before(since(waiting[j])) })
	for _, p := range waiting {
		if !since(p).IsZero() {
			statuses.SetPodResizePendingCondition(p.UID, "Deferred", "before", 1)
		}
	}
	for _, p := range x.Pods {
		if a, ok := x.Allocated[string(p.UID)]; ok {
			allocator.set(a.of(p))
		}
	}
	for _, name := range x.Pushed {
		for _, p := range x.Pods {
			if p.Name == name {
				allocator.push(p.UID)
			}
		}
	}
	retrying = true
	allocator.retry()
	retrying = false
	for _, name := range order {
		var uid types.UID
		for _, p := range x.Pods {
			if p.Name == name {
				uid = p.UID
			}
		}
		one := resizeOut{name, "", ""}
		for _, c := range statuses.GetPodResizeConditions(uid) {
			if c.Type == v1.PodResizeInProgress && one.Status == "" {
				one.Status = "InProgress"
			}
			if c.Type == v1.PodResizePending {
				one.Status, one.Message = c.Reason, c.Message
			}
		}
		out.Resizes = append(out.Resizes, one)
	}
	if len(out.Resizes) != len(x.Pushed) {
		panic(fmt.Sprint("lost some: ", order, x.Pushed))
	}
	return out
}

// What the allocation manager of a version is made of.
type allocationParts struct {
	manager  recordingManager
	absolute v1.ResourceList
	statuses status.Manager
	active   func() []*v1.Pod
	byUID    func(types.UID) (*v1.Pod, bool)
	sources  config.SourcesReady
	recorder record.EventRecorderLogger
	runtime  kubecontainer.Runtime
	critical *preemption.CriticalPodAdmissionHandler
	node     *v1.Node
}
type allocations interface {
	UpdatePodFromAllocation(*v1.Pod) (*v1.Pod, bool)
	set(*v1.Pod)
	push(types.UID)
	retry()
}

func since(p *v1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}
