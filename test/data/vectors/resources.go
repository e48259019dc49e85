package main

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	_ "unsafe" // for go:linkname

	libcgroups "github.com/opencontainers/cgroups"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	v1qos "k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/nodestatus"
	kubeqos "k8s.io/kubernetes/pkg/kubelet/qos"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// The vectors are of machines with cgroup v1, whatever this one has.
func init() {
	isUnifiedOnce.Do(func() {})
	isUnified = false
}

//go:linkname isUnifiedOnce github.com/opencontainers/cgroups.isUnifiedOnce
var isUnifiedOnce sync.Once

//go:linkname isUnified github.com/opencontainers/cgroups.isUnified
var isUnified bool

func init() {
	suites["quantity"] = suite{answer: asking(askQuantity)}
	suites["cpu-convert"] = suite{answer: asking(askCPUConvert)}
	suites["cgroup-name"] = suite{answer: asking(askCgroupName)}
	suites["pod-resources"] = suite{answer: asking(askPodResources)}
	suites["qos-cgroups"] = suite{answer: asking(askQOSCgroups), gates: []string{"QOSReserved"}}
	suites["node-status"] = suite{answer: asking(askNodeStatus)}
}

func askQuantity(in struct{ S string }) (any, error) {
	q, err := resource.ParseQuantity(in.S)
	if err != nil {
		return object{"ok": false}, nil
	}
	return struct {
		OK         bool   `json:"ok"`
		Value      string `json:"value"`
		MilliValue string `json:"milliValue"`
	}{true, fmt.Sprint(q.Value()), fmt.Sprint(q.MilliValue())}, nil
}

func askCPUConvert(in struct{ MilliCPU, PeriodMicros int64 }) (any, error) {
	shares := cm.MilliCPUToShares(in.MilliCPU)
	weight := libcgroups.ConvertCPUSharesToCgroupV2Value(shares)
	return object{"shares": shares, "quota": cm.MilliCPUToQuota(in.MilliCPU, in.PeriodMicros), "weight": weight}, nil
}

func askCgroupName(in struct{ Components []string }) (any, error) {
	name := cm.CgroupName(in.Components)
	systemd := name.ToSystemd()
	return object{"cgroupfs": name.ToCgroupfs(), "systemd": systemd, "fromSystemd": cm.ParseSystemdToCgroupName(systemd)}, nil
}

func texts(list v1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

func resourceList(texts map[string]string) (v1.ResourceList, error) {
	list := v1.ResourceList{}
	for name, text := range texts {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		list[v1.ResourceName(name)] = q
	}
	return list, nil
}

func containersOf(pod *v1.Pod) []v1.Container {
	return slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
}

// shownConfig is a ResourceConfig as vectors show it.
type shownConfig struct {
	Memory    *int64            `json:"memory"`
	CPUShares *uint64           `json:"cpuShares"`
	CPUQuota  *int64            `json:"cpuQuota"`
	CPUPeriod *uint64           `json:"cpuPeriod"`
	HugePages map[int64]int64   `json:"hugePageLimit,omitempty"`
	Unified   map[string]string `json:"unified,omitempty"`
	CPUSet    string            `json:"cpuset,omitempty"`
	PIDs      *int64            `json:"pids,omitempty"`
}

func shown(c *cm.ResourceConfig) *shownConfig {
	if c == nil {
		return nil
	}
	return &shownConfig{c.Memory, c.CPUShares, c.CPUQuota, c.CPUPeriod, c.HugePageLimit, c.Unified, c.CPUSet.String(), c.PidsLimit}
}

type podResourcesIn struct {
	Pod                     *v1.Pod
	EnforceCPULimits        bool
	CPUPeriodMicros         uint64
	NodeMemoryCapacityBytes int64
}

func askPodResources(in podResourcesIn) (any, error) {
	pod := in.Pod
	config, err := first[*cm.ResourceConfig](call(cm.ResourceConfigForPod, pod, in.EnforceCPULimits, in.CPUPeriodMicros))
	if err != nil {
		return nil, err
	}
	scores := map[string]int{}
	for _, c := range containersOf(pod) {
		scores[c.Name] = kubeqos.GetContainerOOMScoreAdjust(pod, &c, in.NodeMemoryCapacityBytes)
	}
	return struct {
		QOSClass    v1.PodQOSClass    `json:"qosClass"`
		Requests    map[string]string `json:"requests"`
		Limits      map[string]string `json:"limits"`
		PodCgroup   *shownConfig      `json:"podCgroup"`
		OOMScoreAdj map[string]int    `json:"oomScoreAdj"`
		Critical    bool              `json:"critical"`
		Static      bool              `json:"static"`
		Mirror      bool              `json:"mirror"`
	}{
		v1qos.ComputePodQOS(pod),
		texts(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})),
		texts(resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})),
		shown(config), scores, kubetypes.IsCriticalPod(pod), kubetypes.IsStaticPod(pod), kubetypes.IsMirrorPod(pod),
	}, nil
}

// cgroups is a CgroupManager that remembers what it is told. Its Create and Update are in files of versions.
type cgroups struct {
	cm.CgroupManager
	version int
	mu      sync.Mutex
	created map[string]bool
	updated map[string]*shownConfig
}

func (c *cgroups) Version() int                             { return c.version }
func (c *cgroups) Validate(cm.CgroupName) error             { return nil }
func (c *cgroups) MemoryUsage(cm.CgroupName) (int64, error) { return 0, nil }
func (c *cgroups) Exists(name cm.CgroupName) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := name.ToCgroupfs()
	return path == "/kubepods" || c.created[path]
}
func (c *cgroups) create(config *cm.CgroupConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.created[config.Name.ToCgroupfs()] = true
}
func (c *cgroups) update(config *cm.CgroupConfig) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := shown(config.ResourceParameters)
	if s != nil {
		s.HugePages = nil
	}
	c.updated[config.Name.ToCgroupfs()] = s
}

type qosCgroupsIn struct {
	Pods               []*v1.Pod
	Allocatable        map[string]string
	QOSReservedPercent map[v1.ResourceName]int64
	CgroupVersion      int
}

func askQOSCgroups(in qosCgroupsIn) (any, error) {
	allocatable, err := resourceList(in.Allocatable)
	if err != nil {
		return nil, err
	}
	made := &cgroups{version: in.CgroupVersion, created: map[string]bool{}, updated: map[string]*shownConfig{}}
	config := cm.NodeConfig{CgroupsPerQOS: true, CgroupVersion: in.CgroupVersion, QOSReserved: in.QOSReservedPercent, EnforceCPULimits: true}
	tiers, err := cm.NewQOSContainerManager(&cm.CgroupSubsystems{MountPoints: map[string]string{}}, cm.CgroupName{"kubepods"}, config, made)
	if err != nil {
		return nil, err
	}
	pods := cm.ActivePodsFunc(func() []*v1.Pod { return in.Pods })
	if _, err := call(tiers.Start, func() v1.ResourceList { return allocatable }, pods); err != nil {
		return nil, err
	}
	if _, err := call(tiers.UpdateCgroups); err != nil {
		return nil, err
	}
	made.mu.Lock()
	defer made.mu.Unlock()
	return object{"created": slices.Sorted(maps.Keys(made.created)), "updated": maps.Clone(made.updated)}, nil
}

type nodeStatusIn struct {
	CPUs                       int
	MemoryBytes                uint64
	HugePages2MiCount          uint64 `json:"hugepages2MiCount"`
	MaxPods, PodsPerCore       int
	EphemeralStorage           string
	NodeAllocatableReservation map[string]string
	DeviceCapacity             map[string]string
	DeviceAllocatable          map[string]string
	RemovedDevices             []string
	ExistingCapacity           map[string]string
}

func askNodeStatus(in nodeStatusIn) (any, error) {
	lists := []v1.ResourceList{}
	for _, texts := range []map[string]string{
		{"ephemeral-storage": in.EphemeralStorage}, in.DeviceCapacity, in.DeviceAllocatable, in.NodeAllocatableReservation, in.ExistingCapacity,
	} {
		list, err := resourceList(texts)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	machine := &MachineInfo{NumCores: in.CPUs, MemoryCapacity: in.MemoryBytes}
	if in.HugePages2MiCount > 0 {
		machine.HugePages = []HugePagesInfo{{PageSize: 2048, NumPages: in.HugePages2MiCount}}
	}
	set, err := first[nodestatus.Setter](call(nodestatus.MachineInfo, "n", in.MaxPods, in.PodsPerCore,
		func() (*MachineInfo, error) { return machine, nil },
		func() v1.ResourceList { return lists[0] },
		func() (v1.ResourceList, v1.ResourceList, []string) { return lists[1], lists[2], in.RemovedDevices },
		func() v1.ResourceList { return lists[3] }, true))
	if err != nil {
		return nil, err
	}
	node := &v1.Node{Status: v1.NodeStatus{Capacity: lists[4], Allocatable: lists[4].DeepCopy()}}
	if err := set(background, node); err != nil {
		return nil, err
	}
	return object{"capacity": texts(node.Status.Capacity), "allocatable": texts(node.Status.Allocatable)}, nil
}
