package main

import (
	"context"
	"encoding/json"
	"math/rand"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
)

// genRefusals makes a resize that is wrong in other ways than by its amounts, and the node that it is for.
func genRefusals(r *rand.Rand, i int) any {
	x := genValidation(r, i).(validationIn)
	pod := x.Pod
	patch := patchSpec{}
	if err := json.Unmarshal(x.Patch, &patch); err != nil {
		panic(err)
	}
	if x.Configuration.FeatureGates == nil {
		x.Configuration.FeatureGates = pick(r, refusalGates...)
	}
	x.Configuration.CPUManagerPolicy = pick(r, "none", "none", "static")
	if r.Intn(3) == 0 {
		addHugePages(r, pod, &patch)
	}
	addVolumes(r, &pod.Spec, 0.7)
	patch.Volumes = patchedVolumes(r, pod.Spec.Volumes)
	pod.Status.QOSClass = qos.ComputePodQOS(pod)
	if r.Intn(10) == 0 {
		pod.Spec.OS = &v1.PodOS{Name: pick(r, v1.Windows, v1.Windows, v1.Linux)}
	}
	if r.Intn(10) == 0 {
		claimNodeResources(pod)
	}
	for _, k := range pod.Spec.Containers {
		s := v1.ContainerStatus{Name: k.Name, ContainerID: "containerd://" + k.Name, Resources: k.Resources.DeepCopy()}
		if r.Intn(3) > 0 {
			s.State.Running = &v1.ContainerStateRunning{}
		}
		// as a kubelet tells it whose gate InPlacePodVerticalScaling is off
		if r.Intn(8) == 0 {
			s.Resources = nil
		}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, s)
	}
	x.Node = &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{v1.LabelOSStable: pick(r, "linux", "linux", "linux", "linux", "linux", "linux", "windows")}}}
	x.Node.Status.Capacity = list(map[string]string{"cpu": "16", "memory": "16Gi", "pods": "110"})
	x.Node.Status.Allocatable = list(map[string]string{"cpu": pick(r, "16", "16", "500m"), "memory": pick(r, "16Gi", "16Gi", "512Mi"), "pods": "110"})
	if len(updateFeatures) > 0 {
		declared := []string{"ExtendWebSocketsToKubelet"}
		for _, name := range updateFeatures {
			if r.Intn(4) > 0 {
				declared = append(declared, name)
			}
		}
		declare(x.Node, declared)
	}
	x.Patch, _ = json.Marshal(patch)
	return x
}

// addHugePages gives containers huge pages, and lets the patch change them or leave them as they are.
func addHugePages(r *rand.Rand, pod *v1.Pod, patch *patchSpec) {
	for n := range pod.Spec.Containers {
		c := &pod.Spec.Containers[n]
		if _, ok := c.Resources.Requests["cpu"]; !ok || r.Intn(2) == 0 {
			continue
		}
		name := pick(r, v1.ResourceName("hugepages-2Mi"), "hugepages-1Gi")
		if c.Resources.Limits == nil {
			c.Resources.Limits = v1.ResourceList{}
		}
		pages := quantity(pick(r, "1Gi", "2Gi"))
		c.Resources.Limits[name], c.Resources.Requests[name] = pages, pages
		for m := range patch.Containers {
			q := &patch.Containers[m]
			if q.Name != c.Name || r.Intn(2) == 0 {
				continue
			}
			then := quantity(pick(r, "1Gi", "1Gi", "3Gi"))
			if q.Resources.Limits == nil {
				q.Resources.Limits = v1.ResourceList{}
			}
			if q.Resources.Requests == nil {
				q.Resources.Requests = v1.ResourceList{}
			}
			q.Resources.Limits[name], q.Resources.Requests[name] = then, then
		}
	}
}

// addVolumes gives a pod volumes, some of them in memory; limited: how many of these have a limit.
func addVolumes(r *rand.Rand, spec *v1.PodSpec, limited float64) {
	spec.Volumes = nil
	for _, name := range []string{"a", "b", "c"}[:r.Intn(4)] {
		v := v1.Volume{Name: name, VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{Medium: pick(r, v1.StorageMediumMemory, v1.StorageMediumMemory, v1.StorageMediumDefault)}}}
		if r.Float64() < limited {
			size := mebi(r, 512)
			v.EmptyDir.SizeLimit = &size
		} else if r.Intn(3) == 0 {
			size := quantity("0")
			v.EmptyDir.SizeLimit = &size
		}
		spec.Volumes = append(spec.Volumes, v)
	}
}

// patchedVolumes changes limits of some of the volumes.
func patchedVolumes(r *rand.Rand, volumes []v1.Volume) []v1.Volume {
	var l []v1.Volume
	for _, v := range volumes {
		if r.Intn(2) == 0 {
			continue
		}
		n := *v.DeepCopy()
		size := pick(r, mebi(r, 512), mebi(r, 512), quantity("0"))
		n.EmptyDir.SizeLimit = &size
		if r.Intn(8) == 0 {
			n.EmptyDir.Medium = pick(r, v1.StorageMediumMemory, v1.StorageMediumDefault)
		}
		l = append(l, n)
	}
	if r.Intn(12) == 0 {
		l = append(l, v1.Volume{Name: "new", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}})
	}
	return l
}

type resizePlugin interface {
	admission.ValidationInterface
	SetExternalKubeInformerFactory(informers.SharedInformerFactory)
	InspectFeatureGates(featuregate.FeatureGate)
	SetReadyFunc(admission.ReadyFunc)
}

// whyRefused asks the admission plugins of the subresource resize, in their order.
func whyRefused(pod, old *core.Pod, node *v1.Node) []fieldError {
	factory := informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)
	factory.Core().V1().Nodes().Informer().GetStore().Add(node)
	for _, p := range resizePlugins() {
		p.SetExternalKubeInformerFactory(factory)
		p.InspectFeatureGates(utilfeature.DefaultFeatureGate)
		p.SetReadyFunc(func() bool { return true })
		a := admission.NewAttributesRecord(pod, old, core.Kind("Pod").WithVersion("v1"), pod.Namespace, pod.Name, core.Resource("pods").WithVersion("v1"), "resize", admission.Update, &metav1.UpdateOptions{}, false, nil)
		if err := p.Validate(context.Background(), a, nil); err != nil {
			_, why, _ := strings.Cut(err.Error(), "is forbidden: ")
			return []fieldError{{"", why}}
		}
	}
	return nil
}
