package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/utils/clock"
)

func init() {
	suites["eviction-thresholds"] = suite{answer: asking(askThresholds)}
	suites["eviction"] = suite{answer: asking(askEviction), atOnce: 8}
}

type thresholdsIn struct {
	EnforceNodeAllocatable                          []string
	EvictionHard, EvictionSoft                      map[string]string
	EvictionSoftGracePeriod, EvictionMinimumReclaim map[string]string
}

func askThresholds(in thresholdsIn) (any, error) {
	thresholds, err := eviction.ParseThresholdConfig(
		in.EnforceNodeAllocatable, in.EvictionHard, in.EvictionSoft, in.EvictionSoftGracePeriod, in.EvictionMinimumReclaim)
	if err != nil {
		// of several faults a map decides which is told
		return object{"error": true}, nil
	}
	var list []object
	for _, t := range thresholds {
		o := object{"signal": t.Signal, "operator": t.Operator, "graceSeconds": t.GracePeriod.Seconds()}
		showValue(o, &t.Value, "quantity", "percentage")
		showValue(o, t.MinReclaim, "minReclaimQuantity", "minReclaimPercentage")
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b object) int {
		return strings.Compare(fmt.Sprint(a["signal"], a["graceSeconds"], a), fmt.Sprint(b["signal"], b["graceSeconds"], b))
	})
	return object{"thresholds": list}, nil
}

func showValue(o object, v *evictionapi.ThresholdValue, quantity, percentage string) {
	switch {
	case v == nil:
	case v.Quantity != nil:
		o[quantity] = fmt.Sprint(v.Quantity.Value())
	default:
		o[percentage] = v.Percentage
	}
}

// fsIn is what is available, the capacity, the free inodes and all inodes of a file system.
type fsIn [4]uint64

type evictionIn struct {
	EvictionHard, EvictionMinimumReclaim     map[string]string
	MemoryAvailableCapacity                  [2]uint64
	NodeFsAvailableCapacityInodesFreeInodes  fsIn
	ImageFsAvailableCapacityInodesFreeInodes fsIn
	DedicatedImageFs                         bool
	MaxPidCurrentProcesses                   [2]int64
	Pods                                     []evictionPod
}
type evictionPod struct {
	Pod                                                                                   *v1.Pod
	MemoryWorkingSetBytes, RootfsUsedBytes, LogsUsedBytes, RootfsInodesUsed, ProcessCount uint64
}

func (fs fsIn) stats(now metav1.Time) *statsapi.FsStats {
	return &statsapi.FsStats{
		Time: now, AvailableBytes: &fs[0], CapacityBytes: &fs[1], UsedBytes: new(fs[1] - fs[0]),
		InodesFree: &fs[2], Inodes: &fs[3], InodesUsed: new(fs[3] - fs[2]),
	}
}

func (p evictionPod) stats(now metav1.Time) statsapi.PodStats {
	memory := &statsapi.MemoryStats{Time: now, WorkingSetBytes: &p.MemoryWorkingSetBytes}
	return statsapi.PodStats{
		PodRef: statsapi.PodReference{Name: p.Pod.Name, Namespace: p.Pod.Namespace, UID: string(p.Pod.UID)}, StartTime: now,
		Memory: memory, ProcessStats: &statsapi.ProcessStats{ProcessCount: &p.ProcessCount},
		Containers: []statsapi.ContainerStats{{
			Name: p.Pod.Spec.Containers[0].Name, StartTime: now, Memory: memory,
			Rootfs: &statsapi.FsStats{Time: now, UsedBytes: &p.RootfsUsedBytes, InodesUsed: &p.RootfsInodesUsed},
			Logs:   &statsapi.FsStats{Time: now, UsedBytes: &p.LogsUsedBytes, InodesUsed: new(uint64)},
		}},
		EphemeralStorage: &statsapi.FsStats{Time: now, UsedBytes: new(p.RootfsUsedBytes + p.LogsUsedBytes), InodesUsed: &p.RootfsInodesUsed},
	}
}

func (in evictionIn) summary() *statsapi.Summary {
	now := metav1.Now()
	images := in.NodeFsAvailableCapacityInodesFreeInodes
	if in.DedicatedImageFs {
		images = in.ImageFsAvailableCapacityInodesFreeInodes
	}
	available, capacity := in.MemoryAvailableCapacity[0], in.MemoryAvailableCapacity[1]
	s := &statsapi.Summary{Node: statsapi.NodeStats{
		NodeName: "n",
		Memory:   &statsapi.MemoryStats{Time: now, AvailableBytes: &available, WorkingSetBytes: new(capacity - available)},
		Fs:       in.NodeFsAvailableCapacityInodesFreeInodes.stats(now),
		Rlimit:   &statsapi.RlimitStats{Time: now, MaxPID: &in.MaxPidCurrentProcesses[0], NumOfRunningProcesses: &in.MaxPidCurrentProcesses[1]},
		Runtime:  &statsapi.RuntimeStats{ImageFs: images.stats(now), ContainerFs: images.stats(now)},
	}}
	for _, p := range in.Pods {
		s.Pods = append(s.Pods, p.stats(now))
	}
	return s
}

// node is what the eviction manager asks and commands.
type node struct {
	in      evictionIn
	summary *statsapi.Summary
	mu      sync.Mutex
	reclaim map[string]bool
	// evicted has the first pod that is evicted; over is closed when the first synchronisation is
	evicted chan object
	over    chan struct{}
	began   bool
}

func (n *node) Get(context.Context, bool) (*statsapi.Summary, error) { return n.summary, nil }
func (n *node) GetCPUAndMemoryStats(context.Context) (*statsapi.Summary, error) {
	return n.summary, nil
}
func (n *node) HasDedicatedImageFs(context.Context) (bool, error)     { return n.in.DedicatedImageFs, nil }
func (n *node) HasDedicatedContainerFs(context.Context) (bool, error) { return false, nil }
func (n *node) DeleteUnusedImages(context.Context) error              { return n.reclaimed("delete-unused-images") }
func (n *node) DeleteAllUnusedContainers(context.Context) error {
	return n.reclaimed("delete-unused-containers")
}
func (n *node) reclaimed(what string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reclaim[what] = true
	return nil
}

// pods is called once in each synchronisation: the second is the end of the manager's goroutine.
func (n *node) pods() (pods []*v1.Pod) {
	if n.began {
		close(n.over)
		runtime.Goexit()
	}
	n.began = true
	for _, p := range n.in.Pods {
		pods = append(pods, p.Pod)
	}
	return pods
}

func (n *node) kill(pod *v1.Pod, _ bool, grace *int64, change func(*v1.PodStatus)) error {
	status := v1.PodStatus{}
	change(&status)
	seconds := int64(-1)
	if grace != nil {
		seconds = *grace
	}
	select {
	case n.evicted <- object{"pod": pod.Namespace + "/" + pod.Name, "message": status.Message, "reason": status.Reason, "gracePeriodSeconds": seconds}:
	default:
	}
	return nil
}

func askEviction(in evictionIn) (any, error) {
	thresholds, err := eviction.ParseThresholdConfig([]string{}, in.EvictionHard, nil, nil, in.EvictionMinimumReclaim)
	if err != nil {
		return nil, err
	}
	n := &node{in: in, summary: in.summary(), reclaim: map[string]bool{}, evicted: make(chan object, 1), over: make(chan struct{})}
	config := eviction.Config{PressureTransitionPeriod: 5 * time.Minute, MaxPodGracePeriodSeconds: 30, Thresholds: thresholds}
	m, _ := eviction.NewManager(n, config, n.kill, n, n, &record.FakeRecorder{}, &v1.ObjectReference{}, clock.RealClock{}, true)
	cleaned := eviction.PodCleanedUpFunc(func(*v1.Pod) bool { return true })
	if _, err := call(m.Start, n, eviction.ActivePodsFunc(n.pods), cleaned, 10*time.Millisecond); err != nil {
		return nil, err
	}
	out := object{"evicted": nil}
	select {
	case evicted := <-n.evicted:
		out["evicted"] = evicted
	case <-n.over:
	case <-time.After(time.Minute):
		return nil, errors.New("no synchronisation came to its end")
	}
	conditions := []string{}
	for _, c := range []struct {
		name string
		on   bool
	}{{"MemoryPressure", m.IsUnderMemoryPressure()}, {"DiskPressure", m.IsUnderDiskPressure()}, {"PIDPressure", m.IsUnderPIDPressure()}} {
		if c.on {
			conditions = append(conditions, c.name)
		}
	}
	out["conditions"] = conditions
	n.mu.Lock()
	defer n.mu.Unlock()
	out["nodeReclaim"] = slices.Sorted(maps.Keys(n.reclaim))
	return out, nil
}
