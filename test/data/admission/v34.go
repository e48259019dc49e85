//go:build k134

package main

import "k8s.io/kubernetes/pkg/kubelet/cm"

func (r *recorder) Create(c *cm.CgroupConfig) error {
	r.made = c.ResourceParameters
	return nil
}
