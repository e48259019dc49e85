//go:build !k134 && !k135 && !k136

// As it is since 1.37.
package main

import (
	cadvisorapi "github.com/google/cadvisor/lib/model"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

type (
	MachineInfo   = cadvisorapi.MachineInfo
	NUMANode      = cadvisorapi.Node
	HugePagesInfo = cadvisorapi.HugePagesInfo
)

func (a affinity) GetAffinity(klog.Logger, string, string) topologymanager.TopologyHint {
	return *a.hint
}
