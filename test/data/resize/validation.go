package main

import (
	"encoding/json"
	"math/rand"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	podstrategy "k8s.io/kubernetes/pkg/registry/core/pod"
)

type validationIn struct {
	Configuration configuration `json:"kubeletConfiguration"`
	Pod           *v1.Pod       `json:"pod"`
	// The spec of a patch of the subresource resize; a null takes an amount away.
	Patch json.RawMessage `json:"patch"`
	// The node of the pod; nil: no admission plugin is asked.
	Node *v1.Node `json:"node,omitempty"`
}

// What is wrong, in the order in which it is found.
type fieldError struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

type named struct {
	Name         string                     `json:"name"`
	Resources    v1.ResourceRequirements    `json:"resources"`
	ResizePolicy []v1.ContainerResizePolicy `json:"resizePolicy,omitempty"`
}
type patchSpec struct {
	Containers     []named                  `json:"containers,omitempty"`
	InitContainers []named                  `json:"initContainers,omitempty"`
	Resources      *v1.ResourceRequirements `json:"resources,omitempty"`
	Volumes        []v1.Volume              `json:"volumes,omitempty"`
}

// genClaimed makes pods whose containers have claims, and patches with policies.
func genClaimed(r *rand.Rand, i int) any {
	x := genValidation(r, i).(validationIn)
	claim := "gpu"
	var patch patchSpec
	if err := json.Unmarshal(x.Patch, &patch); err != nil {
		panic(err)
	}
	policiesOf := map[string][]v1.ContainerResizePolicy{}
	x.Pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: claim, ResourceClaimName: &claim}}
	for _, list := range [][]v1.Container{x.Pod.Spec.InitContainers, x.Pod.Spec.Containers} {
		for n := range list {
			policiesOf[list[n].Name] = list[n].ResizePolicy
			if r.Intn(4) == 0 {
				list[n].Resources.Claims = []v1.ResourceClaim{{Name: claim}}
			}
		}
	}
	for _, list := range [][]named{patch.InitContainers, patch.Containers} {
		for n := range list {
			if r.Intn(3) == 0 {
				list[n].ResizePolicy = pick(r, policiesOf[list[n].Name], policies(r))
			}
		}
	}
	b, err := json.Marshal(patch)
	if err != nil {
		panic(err)
	}
	x.Patch = b
	return x
}

func genValidation(r *rand.Rand, i int) any {
	x := validationIn{}
	if podLevelIsResized {
		// other than by default, so that it can be set back
		x.Configuration.FeatureGates = pick(r, nil, nil, map[string]bool{"InPlacePodLevelResourcesVerticalScaling": false})
	}
	pod, _ := makePod(r, i, false, true, 1000, 512)
	pod.Spec.NodeName = "n"
	if r.Intn(12) == 0 {
		pod.Annotations = map[string]string{v1.MirrorPodAnnotationKey: "0123456789abcdef0123456789abcdef"}
	}
	if r.Intn(4) == 0 {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, v1.Container{Name: "once", Image: "app", Resources: resourcesOf(r, "b", 500, 256), ResizePolicy: pick(r, nil, nil, policies(r))})
	}
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for n := range list {
			if r.Intn(5) == 0 {
				list[n].Resources = v1.ResourceRequirements{}
			} else if r.Intn(6) == 0 {
				// limits alone: the API server makes requests of them
				list[n].Resources.Requests = nil
			}
			if r.Intn(6) == 0 {
				if list[n].Resources.Requests == nil {
					list[n].Resources.Requests = v1.ResourceList{}
				}
				list[n].Resources.Requests["ephemeral-storage"] = mebi(r, 512)
			}
		}
	}
	if q := pod.Spec.Resources; q != nil {
		// as it is stored, by whichever step of the API server
		for name, limit := range q.Limits {
			if _, ok := q.Requests[name]; !ok {
				q.Requests[name] = limit
			}
		}
	}
	legacyscheme.Scheme.Default(pod)
	x.Pod = pod
	change := func(q v1.ResourceRequirements) v1.ResourceRequirements {
		n := resized(r, pick(r, "g", "b"), q)
		if r.Intn(3) == 0 {
			n = resourcesOf(r, pick(r, "g", "b"), 2000, 1024)
		}
		if r.Intn(6) == 0 && n.Limits != nil {
			n.Limits[pick(r, v1.ResourceCPU, v1.ResourceMemory)] = quantity("10m")
		}
		if r.Intn(10) == 0 {
			n.Requests = v1.ResourceList{"ephemeral-storage": mebi(r, 512)}
		}
		return n
	}
	patch := patchSpec{}
	for _, c := range pod.Spec.Containers {
		if r.Intn(3) > 0 {
			patch.Containers = append(patch.Containers, named{c.Name, change(c.Resources), nil})
		}
	}
	for _, c := range pod.Spec.InitContainers {
		if r.Intn(3) > 0 {
			patch.InitContainers = append(patch.InitContainers, named{c.Name, change(c.Resources), nil})
		}
	}
	if q := pod.Spec.Resources; podLevelIsResized && r.Intn(2) == 0 && (q != nil || r.Intn(8) == 0) {
		if q == nil {
			q = &v1.ResourceRequirements{}
		}
		if n := change(*q); len(n.Requests)+len(n.Limits) > 0 {
			patch.Resources = &n
		}
	}
	x.Patch, _ = json.Marshal(patch)
	return x
}

func internal(pod *v1.Pod) *core.Pod {
	legacyscheme.Scheme.Default(pod)
	out := &core.Pod{}
	if err := legacyscheme.Scheme.Convert(pod, out, nil); err != nil {
		panic(err)
	}
	return out
}

func askValidation(b []byte) any {
	var x validationIn
	if err := json.Unmarshal(b, &x); err != nil {
		panic(err)
	}
	defer setGates(gatesAsTheyWere(x.Configuration.FeatureGates))
	setGates(x.Configuration.FeatureGates)
	old := internal(x.Pod)
	before, _ := json.Marshal(x.Pod)
	patch, _ := json.Marshal(map[string]json.RawMessage{"spec": x.Patch})
	merged, err := strategicpatch.StrategicMergePatch(before, patch, v1.Pod{})
	if err != nil {
		panic(err)
	}
	after := &v1.Pod{}
	if err := json.Unmarshal(merged, after); err != nil {
		panic(err)
	}
	changed := internal(after)
	old.ResourceVersion, changed.ResourceVersion = "1", "1"
	found := []fieldError{}
	podstrategy.ResizeStrategy.PrepareForUpdate(background, changed, old)
	for _, e := range podstrategy.ResizeStrategy.ValidateUpdate(background, changed, old) {
		found = append(found, fieldError{e.Field, e.Detail})
	}
	if len(found) == 0 && x.Node != nil {
		found = append(found, whyRefused(changed, old, x.Node)...)
	}
	return found
}
