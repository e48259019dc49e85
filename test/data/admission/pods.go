package main

import (
	"fmt"
	"math/rand"
	"reflect"

	v1 "k8s.io/api/core/v1"
)

const ofClass = "deviceclass.resource.kubernetes.io/gpu.example.com"

var extended = []string{"example.com/gpu", "other.io/nic", ofClass, "deviceclass.resource.kubernetes.io/nic.example.com"}

func gatesOf(r *rand.Rand, sets ...map[string]bool) map[string]bool {
	chosen := map[string]bool{}
	for name, on := range pick(r, sets...) {
		if knows(name) {
			chosen[name] = on
		}
	}
	return chosen
}

// genClaimed makes a node that lists some of the extended resources, and pods whose claims give some of what they ask for.
func genClaimed(r *rand.Rand) any {
	amounts := object{"cpu": "4", "memory": "8Gi", "ephemeral-storage": "20Gi", "pods": pick(r, "110", "3"), "hugepages-2Mi": "64Mi"}
	for _, name := range extended {
		if r.Intn(2) == 0 {
			amounts[name] = fmt.Sprint(r.Intn(4))
		}
	}
	x := claimed{
		FeatureGates: gatesOf(r, nil, nil, map[string]bool{"DRAExtendedResource": true}, map[string]bool{"DRAExtendedResource": false},
			map[string]bool{"DRANodeAllocatableResources": true}, map[string]bool{"DRANodeAllocatableResources": true},
			map[string]bool{"DRANodeAllocatableResources": true, "InPlacePodLevelResourcesVerticalScaling": false}),
		Node: object{"metadata": object{"name": "n", "labels": object{"kubernetes.io/os": "linux"}}, "status": object{"capacity": amounts, "allocatable": amounts}},
		Pod:  claimedPod(r, "comes", true),
	}
	x.OtherPods = []object{}
	for i := range r.Intn(4) {
		x.OtherPods = append(x.OtherPods, claimedPod(r, fmt.Sprintf("p%d", i), false))
	}
	return x
}

func claimedPod(r *rand.Rand, name string, comes bool) object {
	names, mappings := []string{"a", "b"}[:1+r.Intn(2)], []object{}
	container := func(name string) object {
		requests := object{"cpu": pick(r, "250m", "500m", "1"), "memory": pick(r, "256Mi", "1Gi", "2Gi")}
		limits := object{}
		for _, resource := range extended {
			if r.Intn(3) > 0 {
				continue
			}
			requests[resource] = fmt.Sprint(1 + r.Intn(2))
			limits[resource] = requests[resource]
			if r.Intn(2) == 0 {
				mappings = append(mappings, object{"containerName": pick(r, name, name, name, "a"), "resourceName": pick(r, resource, resource, resource, ofClass), "requestName": "container-0-request-0"})
			}
		}
		return object{"name": name, "image": "app", "resources": object{"requests": requests, "limits": limits}}
	}
	containers, init := []object{}, []object{}
	for _, n := range names {
		containers = append(containers, container(n))
	}
	if r.Intn(3) == 0 {
		c := container("i")
		if r.Intn(2) == 0 {
			c["restartPolicy"] = "Always"
		}
		init = append(init, c)
		names = append(names, "i")
	}
	spec, status := object{"containers": containers}, object{"phase": "Running"}
	if len(init) > 0 {
		spec["initContainers"] = init
	}
	if r.Intn(4) == 0 {
		amounts := object{"cpu": "2500m", "memory": "5Gi"}
		spec["resources"] = object{"requests": amounts}
	}
	if comes {
		status["phase"] = "Pending"
		if r.Intn(4) == 0 {
			spec["priority"] = 2000000000
		}
	} else if r.Intn(3) == 0 {
		addStatuses(r, spec, status, containers)
	}
	if len(mappings) > 0 || r.Intn(4) == 0 {
		status["extendedResourceClaimStatus"] = object{"resourceClaimName": name + "-extended", "requestMappings": mappings}
	}
	if r.Intn(2) == 0 {
		addNodeResources(r, status, names)
	}
	return object{"metadata": object{"name": name, "namespace": "default", "uid": "uid-" + name}, "spec": spec, "status": status}
}

// addStatuses tells what is allocated to the containers and in force, as a kubelet does that resizes the pod.
func addStatuses(r *rand.Rand, spec, status object, containers []object) {
	sizes := func() object { return object{"cpu": pick(r, "250m", "1", "2"), "memory": pick(r, "256Mi", "3Gi")} }
	list := []object{}
	for _, c := range containers {
		s := object{"name": c["name"], "allocatedResources": sizes()}
		if r.Intn(3) > 0 {
			s["resources"] = object{"requests": sizes()}
		}
		list = append(list, s)
	}
	status["containerStatuses"] = list
	if r.Intn(2) == 0 {
		status["resources"], status["allocatedResources"] = object{"requests": sizes()}, sizes()
	}
	if r.Intn(4) == 0 {
		status["conditions"] = []object{{"type": "PodResizePending", "status": "True", "reason": pick(r, "Infeasible", "Deferred")}}
	}
}

// addNodeResources gives a pod CPUs, memory and pages of the node by way of claims, in the form of the version.
func addNodeResources(r *rand.Rand, status object, names []string) {
	field, ok := reflect.TypeFor[v1.PodStatus]().FieldByName("NodeAllocatableResourceClaimStatuses")
	if !ok {
		return
	}
	_, whole := field.Type.Elem().FieldByName("Resources")
	size := func(resource string) string {
		switch resource {
		case "cpu":
			return pick(r, "500m", "1", "2")
		case "memory":
			return pick(r, "512Mi", "1Gi", "100M")
		}
		return pick(r, "2Mi", "16Mi")
	}
	list := []object{}
	for i := range 1 + r.Intn(2) {
		referring := []string{}
		for _, n := range names {
			if r.Intn(2) == 0 {
				referring = append(referring, n)
			}
		}
		s := object{"resourceClaimName": fmt.Sprintf("claim-%d", i), "containers": referring}
		resources, mapping, overhead := object{}, []object{}, []object{}
		for _, resource := range []string{"cpu", "memory", "hugepages-2Mi"} {
			if r.Intn(2) == 0 {
				resources[resource] = size(resource)
				mapping = append(mapping, object{"name": resource, "quantity": size(resource)})
			}
			if r.Intn(4) == 0 {
				o := object{"name": resource}
				if r.Intn(3) > 0 {
					o["perPod"] = size(resource)
				}
				if r.Intn(3) > 0 {
					o["perContainer"] = size(resource)
				}
				overhead = append(overhead, o)
			}
		}
		if whole {
			s["resources"] = resources
		} else {
			s["mapping"], s["overhead"] = mapping, overhead
		}
		list = append(list, s)
	}
	status["nodeAllocatableResourceClaimStatuses"] = list
}
