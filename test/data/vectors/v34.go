//go:build k134

package main

import (
	"k8s.io/kubernetes/pkg/kubelet/allocation"
	"k8s.io/kubernetes/pkg/kubelet/cm"
)

func (c *cgroups) Create(config *cm.CgroupConfig) error {
	c.create(config)
	return nil
}
func (c *cgroups) Update(config *cm.CgroupConfig) error {
	c.update(config)
	return nil
}

// ofVersion is what the runtime manager of this version takes in its place.
func ofVersion() []any {
	return []any{allocation.NewInMemoryManager(nil, nil, nil, nil, nil, nil)}
}
