package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	cpustate "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
	"k8s.io/utils/cpuset"
)

func init() {
	gates := []string{"CPUManagerPolicyOptions", "CPUManagerPolicyAlphaOptions", "CPUManagerPolicyBetaOptions"}
	suites["cpu-manager"] = suite{answer: asking(askCPUs), gates: gates}
	suites["cpu-manager-affinity"] = suite{answer: asking(askCPUs), gates: gates}
	suites["cpu-hints"] = suite{answer: asking(askCPUHints), gates: gates}
	suites["cpu-state-file"] = suite{answer: asking(askCPUStateFile), gates: gates}
	suites["topology-merge"] = suite{answer: asking(askMerge), gates: []string{"TopologyManagerPolicyAlphaOptions", "TopologyManagerPolicyBetaOptions"}}
}

// operation adds a pod or removes a container. Affinity: the NUMA nodes that the topology manager chose; none: any.
type operation struct {
	Op                string
	Pod               *v1.Pod
	PodUID, Container string
	Affinity          []int
}

// manager is the CPU manager or the memory manager.
type manager interface {
	allocate(pod *v1.Pod, c *v1.Container) error
	remove(uid, container string) error
}

// do stops at the first container of a pod that is refused, as admission does.
func do(m manager, o operation) error {
	if o.Op == "remove" {
		return m.remove(o.PodUID, o.Container)
	}
	for _, c := range containersOf(o.Pod) {
		if err := m.allocate(o.Pod, &c); err != nil {
			return err
		}
	}
	return nil
}

// affinity is a topology manager that answers one hint.
type affinity struct{ hint *topologymanager.TopologyHint }

func (affinity) Name() string                      { return "container" }
func (affinity) GetPolicy() topologymanager.Policy { return topologymanager.NewNonePolicy() }

func (a affinity) set(nodes []int) error {
	*a.hint = topologymanager.TopologyHint{}
	if nodes == nil {
		return nil
	}
	mask, err := bitmask.NewBitMask(nodes...)
	*a.hint = topologymanager.TopologyHint{NUMANodeAffinity: mask, Preferred: true}
	return err
}

type shownHint struct {
	NUMANodes []int `json:"numaNodes"`
	Preferred bool  `json:"preferred"`
}

func shownOf(hint topologymanager.TopologyHint) shownHint {
	s := shownHint{Preferred: hint.Preferred}
	if hint.NUMANodeAffinity != nil {
		s.NUMANodes = hint.NUMANodeAffinity.GetBits()
	}
	return s
}

type hintsByResource = map[string][]topologymanager.TopologyHint

// shownHints puts hints in an order: theirs is of a map.
func shownHints(hints hintsByResource) map[string][]shownHint {
	if hints == nil {
		return nil
	}
	out := map[string][]shownHint{}
	for name, list := range hints {
		out[name] = []shownHint{}
		for _, hint := range list {
			out[name] = append(out[name], shownOf(hint))
		}
		slices.SortFunc(out[name], func(a, b shownHint) int {
			if d := len(a.NUMANodes) - len(b.NUMANodes); d != 0 {
				return d
			}
			return strings.Compare(fmt.Sprint(a.NUMANodes), fmt.Sprint(b.NUMANodes))
		})
	}
	return out
}

// hintsFor asks a policy for the hints of a pod's containers, and of the pod as a whole.
func hintsFor(ofContainer, ofPod, state any, pod *v1.Pod) (containers map[string]any, whole any, err error) {
	containers = map[string]any{}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		hints, err := first[hintsByResource](call(ofContainer, state, pod, c))
		if err != nil {
			return nil, nil, err
		}
		containers[c.Name] = shownHints(hints)
	}
	hints, err := first[hintsByResource](call(ofPod, state, pod))
	return containers, shownHints(hints), err
}

type cpusIn struct {
	Topology []struct {
		CPU, Core, Socket, NUMA, UncoreCache int
	}
	NumReservedCPUs    int
	ReservedSystemCPUs string
	PolicyOptions      map[string]string
	Ops                []operation
	Pod                *v1.Pod
}

func (in cpusIn) topology() *topology.CPUTopology {
	details := topology.CPUDetails{}
	for _, c := range in.Topology {
		details[c.CPU] = topology.CPUInfo{NUMANodeID: c.NUMA, SocketID: c.Socket, CoreID: c.Core, UncoreCacheID: c.UncoreCache}
	}
	return &topology.CPUTopology{
		CPUDetails: details, NumCPUs: details.CPUs().Size(), NumCores: details.Cores().Size(), NumSockets: details.Sockets().Size(),
		NumNUMANodes: details.NUMANodes().Size(), NumUncoreCache: details.UncoreCaches().Size(),
	}
}

type cpuManager struct {
	policy   cpumanager.Policy
	state    cpustate.State
	affinity affinity
}

// newCPUManager makes one over a new state. failed: what the vectors say where the kubelet makes none.
func newCPUManager(in cpusIn, state cpustate.State) (m *cpuManager, failed object, err error) {
	reserved, err := cpuset.Parse(in.ReservedSystemCPUs)
	if err != nil {
		return nil, nil, err
	}
	m = &cpuManager{state: state, affinity: affinity{&topologymanager.TopologyHint{}}}
	m.policy, err = first[cpumanager.Policy](call(cpumanager.NewStaticPolicy, in.topology(), in.NumReservedCPUs, reserved, m.affinity, in.PolicyOptions))
	if err != nil {
		return nil, object{"policyError": err.Error()}, nil
	}
	if _, err := call(m.policy.Start, state); err != nil {
		return nil, object{"startError": err.Error()}, nil
	}
	return m, nil, nil
}

func (m *cpuManager) allocate(pod *v1.Pod, c *v1.Container) error {
	_, err := call(m.policy.Allocate, m.state, pod, c)
	return err
}
func (m *cpuManager) remove(uid, container string) error {
	_, err := call(m.policy.RemoveContainer, m.state, uid, container)
	return err
}

type cpuStep struct {
	Error         string                       `json:"error,omitempty"`
	Assignments   map[string]map[string]string `json:"assignments"`
	DefaultCPUSet string                       `json:"defaultCPUSet"`
}

func (m *cpuManager) step(failed error) cpuStep {
	s := cpuStep{Assignments: map[string]map[string]string{}, DefaultCPUSet: m.state.GetDefaultCPUSet().String()}
	if failed != nil {
		s.Error = failed.Error()
	}
	for uid, containers := range m.state.GetCPUAssignments() {
		s.Assignments[uid] = map[string]string{}
		for name, cpus := range containers {
			s.Assignments[uid][name] = cpus.String()
		}
	}
	return s
}

func memoryCPUState() (cpustate.State, error) {
	return first[cpustate.State](call(cpustate.NewMemoryState))
}

func askCPUs(in cpusIn) (any, error) {
	state, err := memoryCPUState()
	if err != nil {
		return nil, err
	}
	m, failed, err := newCPUManager(in, state)
	if m == nil {
		return failed, err
	}
	var steps []cpuStep
	for _, o := range in.Ops {
		if err := m.affinity.set(o.Affinity); err != nil {
			return nil, err
		}
		steps = append(steps, m.step(do(m, o)))
	}
	return object{"steps": steps}, nil
}

// cpuManagerAfterOps is a manager that has done all operations, whatever each of them said.
func cpuManagerAfterOps(in cpusIn, state cpustate.State) (*cpuManager, object, error) {
	m, failed, err := newCPUManager(in, state)
	if m == nil {
		return nil, failed, err
	}
	for _, o := range in.Ops {
		_ = do(m, o)
	}
	return m, nil, nil
}

func askCPUHints(in cpusIn) (any, error) {
	state, err := memoryCPUState()
	if err != nil {
		return nil, err
	}
	m, failed, err := cpuManagerAfterOps(in, state)
	if m == nil {
		return failed, err
	}
	containers, pod, err := hintsFor(m.policy.GetTopologyHints, m.policy.GetPodTopologyHints, m.state, in.Pod)
	return object{"containerHints": containers, "podHints": pod, "defaultCPUSet": state.GetDefaultCPUSet().String()}, err
}

func cpuStateIn(dir, policy string, containers containermap.ContainerMap) (cpustate.State, error) {
	return first[cpustate.State](call(cpustate.NewCheckpointState, dir, "cpu_manager_state", policy, containers))
}

func askCPUStateFile(in cpusIn) (any, error) {
	return inFolder(func(dir string) (any, error) {
		state, err := cpuStateIn(dir, "static", containermap.NewContainerMap())
		if err != nil {
			return nil, err
		}
		if m, failed, err := cpuManagerAfterOps(in, state); m == nil {
			return failed, err
		}
		return fileAndHashed(filepath.Join(dir, "cpu_manager_state"), "state.CPUManagerCheckpoint")
	})
}

func inFolder(ask func(dir string) (any, error)) (any, error) {
	dir, err := os.MkdirTemp("", "vectors")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return ask(dir)
}

type mergeIn struct {
	Policy        string
	PolicyOptions map[string]string
	Distances     [][]uint64
	ProviderHints []map[string][]shownHint
}

func askMerge(in mergeIn) (any, error) {
	nodes := []NUMANode{}
	for i, distances := range in.Distances {
		nodes = append(nodes, NUMANode{Id: i, Distances: distances})
	}
	options, err := first[topologymanager.PolicyOptions](call(topologymanager.NewPolicyOptions, in.PolicyOptions))
	if err != nil {
		return nil, err
	}
	info, err := topologymanager.NewNUMAInfo(nodes, options)
	if err != nil {
		return nil, err
	}
	policies := map[string]any{
		"best-effort":      topologymanager.NewBestEffortPolicy,
		"restricted":       topologymanager.NewRestrictedPolicy,
		"single-numa-node": topologymanager.NewSingleNumaNodePolicy,
	}
	made, ok := policies[in.Policy]
	if !ok {
		return nil, fmt.Errorf("there is no policy %q", in.Policy)
	}
	policy, err := first[topologymanager.Policy](call(made, info, options))
	if err != nil {
		return nil, err
	}
	providers, err := providerHints(in)
	if err != nil {
		return nil, err
	}
	out, err := call(policy.Merge, providers)
	if err != nil {
		return nil, err
	}
	return object{"hint": shownOf(out[0].(topologymanager.TopologyHint)), "admit": out[1]}, nil
}

// providerHints keeps what has no list (no preference) apart from what has an empty one (it cannot be met).
func providerHints(in mergeIn) (all []hintsByResource, err error) {
	for _, provider := range in.ProviderHints {
		hints := hintsByResource{}
		for name, list := range provider {
			if list != nil {
				hints[name] = []topologymanager.TopologyHint{}
			} else {
				hints[name] = nil
			}
			for _, s := range list {
				hint := topologymanager.TopologyHint{Preferred: s.Preferred}
				if s.NUMANodes != nil {
					if hint.NUMANodeAffinity, err = bitmask.NewBitMask(s.NUMANodes...); err != nil {
						return nil, err
					}
				}
				hints[name] = append(hints[name], hint)
			}
		}
		all = append(all, hints)
	}
	return all, nil
}
