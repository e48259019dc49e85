// What a kubelet tells its runtime of the resources of a pod's sandbox, for each of cases.json: kubelet-1.X.Y.json. The functions are the
// version's own, in kubelet.go, which extract.go makes; built in a module that requires the v0.X.Y of k8s.io/api, k8s.io/component-helpers
// and k8s.io/cri-api. `sandbox <cases.json >kubelet-1.X.Y.json`.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// What the functions find by these names in a kubelet.
type gates map[string]bool

func (of gates) Enabled(name string) bool { return of[name] }

type containers struct{}

func (containers) PodHasExclusiveCPUs(...any) bool { return false }

type kubeGenericRuntimeManager struct {
	cpuCFSQuota          bool
	cpuCFSQuotaPeriod    metav1.Duration
	singleProcessOOMKill *bool
	containerManager     containers
}

const (
	MinShares      = 2
	MaxShares      = 262144
	SharesPerCPU   = 1024
	MilliCPUToCPU  = 1000
	QuotaPeriod    = 100000
	MinQuotaPeriod = 1000
)

var (
	isUnified            = false
	isCgroup2UnifiedMode = func() bool { return isUnified }
	utilfeature          = struct{ DefaultFeatureGate gates }{}
	features             = struct {
		PodLevelResources, DisableCPUQuotaWithExclusiveCPUs, DRANodeAllocatableResources, CPUCFSQuotaPeriod string
	}{"PodLevelResources", "DisableCPUQuotaWithExclusiveCPUs", "DRANodeAllocatableResources", "CustomCPUCFSQuotaPeriod"}
	kubefeatures = features
	cm           = struct {
		QuotaPeriod      int64
		MilliCPUToShares func(int64) uint64
		MilliCPUToQuota  func(int64, int64) int64
	}{QuotaPeriod, MilliCPUToShares, MilliCPUToQuota}
)

type Case struct {
	Name          string `json:"name"`
	CgroupVersion int    `json:"cgroupVersion"`
	Configuration struct {
		CPUCFSQuota          *bool           `json:"cpuCFSQuota"`
		CPUCFSQuotaPeriod    string          `json:"cpuCFSQuotaPeriod"`
		SingleProcessOOMKill *bool           `json:"singleProcessOOMKill"`
		FeatureGates         map[string]bool `json:"featureGates"`
	} `json:"configuration"`
	Pod v1.Pod `json:"pod"`
}
type Answer struct {
	Resources *runtimeapi.LinuxContainerResources `json:"resources"`
	Overhead  *runtimeapi.LinuxContainerResources `json:"overhead"`
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answer(one Case) Answer {
	utilfeature.DefaultFeatureGate = gates{"PodLevelResources": true, "DisableCPUQuotaWithExclusiveCPUs": true}
	for name, on := range one.Configuration.FeatureGates {
		utilfeature.DefaultFeatureGate[name] = on
	}
	isUnified = one.CgroupVersion == 2
	period := 100 * time.Millisecond
	if one.Configuration.CPUCFSQuotaPeriod != "" {
		var err error
		period, err = time.ParseDuration(one.Configuration.CPUCFSQuotaPeriod)
		must(err)
	}
	m := &kubeGenericRuntimeManager{
		cpuCFSQuota:          one.Configuration.CPUCFSQuota == nil || *one.Configuration.CPUCFSQuota,
		cpuCFSQuotaPeriod:    metav1.Duration{Duration: period},
		singleProcessOOMKill: one.Configuration.SingleProcessOOMKill,
	}
	config := &runtimeapi.PodSandboxConfig{Linux: &runtimeapi.LinuxPodSandboxConfig{}}
	must(m.applySandboxResources(context.Background(), &one.Pod, config))
	return Answer{Resources: config.Linux.Resources, Overhead: config.Linux.Overhead}
}

func main() {
	var cases []Case
	must(json.NewDecoder(os.Stdin).Decode(&cases))
	answers := map[string]Answer{}
	for _, one := range cases {
		answers[one.Name] = answer(one)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	must(out.Encode(answers))
}
