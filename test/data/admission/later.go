//go:build !k134

package main

import (
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm"
)

func (r *recorder) Create(_ klog.Logger, c *cm.CgroupConfig) error {
	r.made = c.ResourceParameters
	return nil
}
