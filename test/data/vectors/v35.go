//go:build !k134

package main

import (
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm"
)

func (c *cgroups) Create(_ klog.Logger, config *cm.CgroupConfig) error {
	c.create(config)
	return nil
}
func (c *cgroups) Update(_ klog.Logger, config *cm.CgroupConfig) error {
	c.update(config)
	return nil
}

// ofVersion: 1.34 alone has something.
func ofVersion() []any { return nil }
