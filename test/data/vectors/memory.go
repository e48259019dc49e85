package main

import (
	"fmt"
	"path/filepath"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	memstate "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

func init() {
	suites["memory-manager"] = suite{answer: asking(askMemory)}
	suites["memory-hints"] = suite{answer: asking(askMemoryHints)}
	suites["memory-state-file"] = suite{answer: asking(askMemoryStateFile)}
}

type memoryIn struct {
	NUMANodes []struct {
		ID                  int
		MemoryBytes         uint64
		HugePages2Mi        uint64 `json:"hugepages2Mi"`
		SystemReservedBytes uint64
	}
	Ops []operation
	Pod *v1.Pod
}

type memoryManager struct {
	policy memorymanager.Policy
	state  memstate.State
}

// newMemoryManager is as newCPUManager.
func newMemoryManager(in memoryIn, state memstate.State) (m *memoryManager, failed object, err error) {
	machine := &MachineInfo{}
	reserved := map[int]map[v1.ResourceName]uint64{}
	for _, n := range in.NUMANodes {
		node := NUMANode{Id: n.ID, Memory: n.MemoryBytes}
		if n.HugePages2Mi > 0 {
			node.HugePages = []HugePagesInfo{{PageSize: 2048, NumPages: n.HugePages2Mi}}
		}
		machine.Topology = append(machine.Topology, node)
		reserved[n.ID] = map[v1.ResourceName]uint64{v1.ResourceMemory: n.SystemReservedBytes}
	}
	m = &memoryManager{state: state}
	m.policy, err = first[memorymanager.Policy](call(memorymanager.NewPolicyStatic, machine, reserved, affinity{&topologymanager.TopologyHint{}}))
	if err != nil {
		return nil, object{"policyError": err.Error()}, nil
	}
	if _, err := call(m.policy.Start, state); err != nil {
		return nil, object{"startError": err.Error()}, nil
	}
	return m, nil, nil
}

func (m *memoryManager) allocate(pod *v1.Pod, c *v1.Container) error {
	_, err := call(m.policy.Allocate, m.state, pod, c)
	return err
}
func (m *memoryManager) remove(uid, container string) error {
	_, err := call(m.policy.RemoveContainer, m.state, uid, container)
	return err
}

type memoryStep struct {
	Error       string                                 `json:"error,omitempty"`
	Assignments map[string]map[string][]memstate.Block `json:"assignments"`
	Free        map[string]map[string]uint64           `json:"free"`
}

func (m *memoryManager) step(failed error) memoryStep {
	s := memoryStep{Assignments: m.state.GetMemoryAssignments(), Free: map[string]map[string]uint64{}}
	if failed != nil {
		s.Error = failed.Error()
	}
	for id, node := range m.state.GetMachineState() {
		free := map[string]uint64{}
		for name, table := range node.MemoryMap {
			free[string(name)] = table.Free
		}
		s.Free[fmt.Sprint(id)] = free
	}
	return s
}

func askMemory(in memoryIn) (any, error) {
	state, err := first[memstate.State](call(memstate.NewMemoryState))
	if err != nil {
		return nil, err
	}
	m, failed, err := newMemoryManager(in, state)
	if m == nil {
		return failed, err
	}
	var steps []memoryStep
	for _, o := range in.Ops {
		steps = append(steps, m.step(do(m, o)))
	}
	return object{"steps": steps}, nil
}

// memoryManagerAfterOps is a manager that has done all operations, whatever each of them said.
func memoryManagerAfterOps(in memoryIn, state memstate.State) (*memoryManager, object, error) {
	m, failed, err := newMemoryManager(in, state)
	if m == nil {
		return nil, failed, err
	}
	for _, o := range in.Ops {
		_ = do(m, o)
	}
	return m, nil, nil
}

func askMemoryHints(in memoryIn) (any, error) {
	state, err := first[memstate.State](call(memstate.NewMemoryState))
	if err != nil {
		return nil, err
	}
	m, failed, err := memoryManagerAfterOps(in, state)
	if m == nil {
		return failed, err
	}
	containers, pod, err := hintsFor(m.policy.GetTopologyHints, m.policy.GetPodTopologyHints, m.state, in.Pod)
	return object{"containerHints": containers, "podHints": pod}, err
}

func memoryStateIn(dir, policy string) (memstate.State, error) {
	return first[memstate.State](call(memstate.NewCheckpointState, dir, "memory_manager_state", policy))
}

func askMemoryStateFile(in memoryIn) (any, error) {
	return inFolder(func(dir string) (any, error) {
		state, err := memoryStateIn(dir, "Static")
		if err != nil {
			return nil, err
		}
		if m, failed, err := memoryManagerAfterOps(in, state); m == nil {
			return failed, err
		}
		return fileAndHashed(filepath.Join(dir, "memory_manager_state"), "state.MemoryManagerCheckpoint")
	})
}
