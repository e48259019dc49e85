// Answers of a kubelet's own functions about resizes: the vectors of test/vectors whose names begin with resize. Built with the tag
// of a version (k134 to k137) in a module that requires k8s.io/kubernetes of that version with its staging modules replaced by
// their v0 releases, as .ci/go-programs does. It wants a machine of cgroup v1, whose swap it takes for that of v2.
//
//	resize queue SEED COUNT       pushes resizes into the allocation manager, lets it retry them, and tells order and conditions
//	resize crowd SEED COUNT       the same with more of them than Go sorts by insertion, and pods that are not admitted yet
//	resize volumes SEED COUNT     queue with volumes in memory, whose size changes
//	resize validation SEED COUNT  what the API server's strategy of the subresource resize finds wrong with a patch
//	resize claimed SEED COUNT     the same with claims of containers, and policies in the patch
//	resize refusals SEED COUNT    the same, and its admission plugins, with pods and nodes that are others than Linux's, claims, volumes and features
//	resize actuation SEED COUNT   lets the runtime manager sync a pod whose allocation changed, and tells what it writes and stops
//	resize unified SEED COUNT     the same as on cgroup v2, with Memory QoS, swap and containers that have CPUs of their own
//	resize hugepages SEED COUNT   the same with huge pages of 2 MiB and 1 GiB, which the machine must have
//	resize mounts SEED COUNT      the same with volumes in memory
//	resize inits SEED COUNT       the same while init containers run
//
// Each case is asked five times, or forty; those whose answers differ (Go's maps choose) are left out.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"strconv"
	_ "unsafe"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	_ "k8s.io/kubernetes/pkg/kubelet/kuberuntime"
)

//go:linkname isCgroup2UnifiedMode k8s.io/kubernetes/pkg/kubelet/kuberuntime.isCgroup2UnifiedMode
var isCgroup2UnifiedMode func() bool

// The parts of a KubeletConfiguration that the answers depend on.
type configuration struct {
	CPUManagerPolicy        string            `json:"cpuManagerPolicy,omitempty"`
	MemoryManagerPolicy     string            `json:"memoryManagerPolicy,omitempty"`
	MemorySwap              map[string]string `json:"memorySwap,omitempty"`
	FeatureGates            map[string]bool   `json:"featureGates,omitempty"`
	CPUCFSQuota             *bool             `json:"cpuCFSQuota,omitempty"`
	SingleProcessOOMKill    *bool             `json:"singleProcessOOMKill,omitempty"`
	MemoryThrottlingFactor  *float64          `json:"memoryThrottlingFactor,omitempty"`
	MemoryReservationPolicy string            `json:"memoryReservationPolicy,omitempty"`
	KubeReserved            map[string]string `json:"kubeReserved,omitempty"`
}

// What is allocated to a pod, as allocated_pods_state has it.
type granted struct {
	ContainerResources   map[string]v1.ResourceRequirements
	PodLevelResources    *v1.ResourceRequirements      `json:",omitempty"`
	EmptyDirVolumeLimits map[string]*resource.Quantity `json:",omitempty"`
}

// of returns the pod with these resources in place of its own.
func (a granted) of(pod *v1.Pod) *v1.Pod {
	p := pod.DeepCopy()
	for _, list := range [][]v1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range list {
			if r, ok := a.ContainerResources[list[i].Name]; ok {
				list[i].Resources = *r.DeepCopy()
			}
		}
	}
	p.Spec.Resources = a.PodLevelResources.DeepCopy()
	for _, v := range p.Spec.Volumes {
		if limit, ok := a.EmptyDirVolumeLimits[v.Name]; ok {
			*v.EmptyDir.SizeLimit = limit.DeepCopy()
		}
	}
	return p
}

func quantity(s string) resource.Quantity { return resource.MustParse(s) }
func list(m map[string]string) v1.ResourceList {
	l := v1.ResourceList{}
	for k, s := range m {
		l[v1.ResourceName(k)] = quantity(s)
	}
	return l
}
func pick[T any](r *rand.Rand, xs ...T) T { return xs[r.Intn(len(xs))] }
func milli(r *rand.Rand, most int) resource.Quantity {
	return *resource.NewMilliQuantity(int64(1+r.Intn(most/50))*50, resource.DecimalSI)
}
func mebi(r *rand.Rand, most int) resource.Quantity {
	return *resource.NewQuantity(int64(1+r.Intn(most/32))*32<<20, resource.BinarySI)
}

// resourcesOf makes the resources of a container; class: g(uaranteed), b(urstable).
func resourcesOf(r *rand.Rand, class string, cpu, mem int) v1.ResourceRequirements {
	q := v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": milli(r, cpu), "memory": mebi(r, mem)}}
	if class == "g" {
		if r.Intn(2) == 0 {
			q.Requests["cpu"] = *resource.NewQuantity(int64(1+r.Intn(3)), resource.DecimalSI)
		}
		q.Limits = q.Requests.DeepCopy()
		return q
	}
	if r.Intn(3) > 0 {
		q.Limits = v1.ResourceList{}
		for _, name := range []v1.ResourceName{"cpu", "memory"} {
			amount := q.Requests[name]
			limit := amount.DeepCopy()
			limit.Add(pick(r, amount, *resource.NewQuantity(0, resource.DecimalSI)))
			if r.Intn(4) > 0 {
				q.Limits[name] = limit
			}
		}
	}
	if r.Intn(5) == 0 {
		delete(q.Requests, pick(r, v1.ResourceCPU, v1.ResourceMemory))
	}
	return q
}

// resized changes some amounts of those that are there, up or down; limits stay at or above requests.
func resized(r *rand.Rand, class string, q v1.ResourceRequirements) v1.ResourceRequirements {
	n := *q.DeepCopy()
	for _, name := range []v1.ResourceName{"cpu", "memory"} {
		if r.Intn(3) == 0 {
			continue
		}
		num, den := int64(pick(r, 1, 3, 2, 3, 5, 8)), int64(pick(r, 2, 2, 2, 4))
		for _, l := range []v1.ResourceList{n.Requests, n.Limits} {
			a, ok := l[name]
			if !ok || (class != "g" && r.Intn(3) == 0) {
				continue
			}
			if name == "cpu" {
				l[name] = *resource.NewMilliQuantity(a.MilliValue()*num/den, resource.DecimalSI)
			} else {
				l[name] = *resource.NewQuantity(a.Value()*num/den, resource.BinarySI)
			}
		}
		req, lim := n.Requests[name], n.Limits[name]
		if _, ok := n.Limits[name]; ok && lim.Cmp(req) < 0 {
			n.Limits[name] = req.DeepCopy()
		}
	}
	return n
}

func policies(r *rand.Rand) []v1.ContainerResizePolicy {
	var p []v1.ContainerResizePolicy
	for _, name := range []v1.ResourceName{"cpu", "memory"} {
		if r.Intn(2) == 0 {
			p = append(p, v1.ContainerResizePolicy{ResourceName: name, RestartPolicy: pick(r, v1.NotRequired, v1.NotRequired, v1.RestartContainer)})
		}
	}
	return p
}

// makePod makes a pod and what is allocated to it; changed: the two differ.
func makePod(r *rand.Rand, i int, changed, podLevel bool, cpu, mem int) (*v1.Pod, granted) {
	class := pick(r, "g", "b", "b")
	name := fmt.Sprintf("p%d", i)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(fmt.Sprintf("%08d-aaaa-4aaa-8aaa-000000000000", i))}}
	a := granted{ContainerResources: map[string]v1.ResourceRequirements{}}
	add := func(cs *[]v1.Container, name string, restart *v1.ContainerRestartPolicy) {
		before := resourcesOf(r, class, cpu, mem)
		after := before
		if changed {
			after = resized(r, class, before)
		}
		a.ContainerResources[name] = before
		c := v1.Container{Name: name, Image: "app", Resources: after, RestartPolicy: restart, ResizePolicy: policies(r)}
		*cs = append(*cs, c)
	}
	always := v1.ContainerRestartPolicyAlways
	if r.Intn(6) == 0 {
		add(&pod.Spec.InitContainers, "side", &always)
	}
	for c := 0; c < 1+r.Intn(2); c++ {
		add(&pod.Spec.Containers, fmt.Sprintf("c%d", c), nil)
	}
	if podLevel && r.Intn(4) == 0 {
		before := resourcesOf(r, class, 2*cpu, 2*mem)
		for _, q := range a.ContainerResources {
			for name, amount := range q.Requests {
				if sum, ok := before.Requests[name]; ok {
					sum.Add(amount)
					before.Requests[name] = sum
				}
			}
		}
		for name := range before.Limits {
			before.Limits[name] = before.Requests[name].DeepCopy()
		}
		after := before
		if changed {
			after = resized(r, "g", before)
		}
		a.PodLevelResources, pod.Spec.Resources = before.DeepCopy(), after.DeepCopy()
	}
	return pod, a
}

func gatesAsTheyWere(set map[string]bool) map[string]bool {
	back := map[string]bool{}
	for name := range set {
		back[name] = utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(name))
	}
	return back
}

func setGates(gates map[string]bool) {
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		panic(err)
	}
}

// A container manager of a node with these policies, which records what is written to the cgroup of a pod.
type recordingManager struct {
	cm.ContainerManager
	config cm.NodeConfig
	pods   *podCgroups
	// containers that have CPUs of their own
	exclusive sets.Set[string]
}

func (m recordingManager) GetNodeConfig() cm.NodeConfig                   { return m.config }
func (m recordingManager) NewPodContainerManager() cm.PodContainerManager { return m.pods }

type suite struct {
	gen func(*rand.Rand, int) any
	ask func([]byte) any
	// how often a case is asked
	times int
}

func main() {
	seed, _ := strconv.ParseInt(os.Args[2], 10, 64)
	count, _ := strconv.Atoi(os.Args[3])
	s := map[string]suite{"queue": {genQueue, askQueue, 5}, "crowd": {genCrowd, askQueue, 5}, "volumes": {genVolumes, askQueue, 5}, "actuation": {genActuation, askActuation, 5}, "unified": {genUnified, askActuation, 5}, "hugepages": {genHugePages, askActuation, 5}, "mounts": {genMounts, askActuation, 5}, "inits": {genInits, askActuation, 5},
		"validation": {genValidation, askValidation, 40}, "refusals": {genRefusals, askValidation, 40}, "claimed": {genClaimed, askValidation, 40}}[os.Args[1]]
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for i, kept := 0, 0; kept < count; i++ {
		in, err := json.Marshal(s.gen(rand.New(rand.NewSource(seed+int64(i))), i))
		if err != nil {
			panic(err)
		}
		first := s.ask(in)
		stable := true
		for n := 1; n < s.times; n++ {
			stable = stable && reflect.DeepEqual(first, s.ask(in))
		}
		if !stable {
			fmt.Fprintln(os.Stderr, "unstable", i)
			continue
		}
		kept++
		out.Encode(map[string]any{"name": fmt.Sprintf("%s-%d-%d", os.Args[1], seed, i), "in": json.RawMessage(in), "out": first})
	}
}

var background = context.Background()

// The directory of a kubelet: what it takes down of a case must not be there in the next.
var root string

func freshRoot() func() {
	root, _ = os.MkdirTemp("", "resize")
	return func() { os.RemoveAll(root) }
}
