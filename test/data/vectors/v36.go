//go:build k134 || k135 || k136

// As it is until 1.36.
package main

import (
	cadvisorapi "github.com/google/cadvisor/info/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
)

type (
	MachineInfo   = cadvisorapi.MachineInfo
	NUMANode      = cadvisorapi.Node
	HugePagesInfo = cadvisorapi.HugePagesInfo
)

func (a affinity) GetAffinity(string, string) topologymanager.TopologyHint { return *a.hint }
