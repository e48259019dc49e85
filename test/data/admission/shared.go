package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"time"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/kuberuntime"
	"k8s.io/utils/cpuset"
)

// kept keeps the linker from leaving out the types that newOf looks for.
var kept = []any{cm.NewContainerManager, kuberuntime.NewKubeGenericRuntimeManager}

//go:linkname generateLinuxContainerResources k8s.io/kubernetes/pkg/kubelet/kuberuntime.(*kubeGenericRuntimeManager).generateLinuxContainerResources
func generateLinuxContainerResources(m unsafe.Pointer, ctx context.Context, pod *v1.Pod, c *v1.Container, enforceMemoryQoS bool) *runtimeapi.LinuxContainerResources

//go:linkname setCPUCgroupConfig k8s.io/kubernetes/pkg/kubelet/cm.(*qosContainerManagerImpl).setCPUCgroupConfig
func setCPUCgroupConfig(m unsafe.Pointer, configs map[v1.PodQOSClass]*cm.CgroupConfig) error

type shared struct {
	Machine       object        `json:"machine"`
	Configuration configuration `json:"kubeletConfiguration"`
	Pods          []object      `json:"pods"`
}
type configuration struct {
	CPUManagerPolicy        string            `json:"cpuManagerPolicy"`
	CPUManagerPolicyOptions map[string]string `json:"cpuManagerPolicyOptions,omitempty"`
	MemoryManagerPolicy     string            `json:"memoryManagerPolicy"`
	TopologyManagerPolicy   string            `json:"topologyManagerPolicy"`
	TopologyManagerScope    string            `json:"topologyManagerScope"`
	FeatureGates            map[string]bool   `json:"featureGates,omitempty"`
}

func genShared(r *rand.Rand) any {
	x := shared{Machine: machine(), Configuration: configuration{
		CPUManagerPolicy:      pick(r, "static", "static", "static", "none"),
		MemoryManagerPolicy:   pick(r, "Static", "Static", "None"),
		TopologyManagerPolicy: pick(r, "none", "best-effort", "restricted", "single-numa-node"),
		TopologyManagerScope:  pick(r, "container", "pod", "pod"),
		FeatureGates: gatesOf(r, nil, map[string]bool{"PodLevelResourceManagers": true}, map[string]bool{"PodLevelResourceManagers": true},
			map[string]bool{"DRANodeAllocatableResources": true}, map[string]bool{"DRANodeAllocatableResources": true, "PodLevelResourceManagers": true}),
	}}
	if x.Configuration.CPUManagerPolicy == "static" && r.Intn(4) == 0 {
		x.Configuration.CPUManagerPolicyOptions = map[string]string{"full-pcpus-only": "true"}
	}
	for i := range 2 + r.Intn(4) {
		x.Pods = append(x.Pods, sharedPod(r, fmt.Sprintf("p%d", i)))
	}
	return x
}

// machine is one of two NUMA nodes, with four cores of two CPUs and 8 GiB each, as cAdvisor tells it.
func machine() object {
	nodes := []object{}
	for id := range 2 {
		cores := []object{}
		for c := range 4 {
			cores = append(cores, object{"core_id": c, "thread_ids": []int{8*id + c, 8*id + c + 4}, "socket_id": id})
		}
		nodes = append(nodes, object{"node_id": id, "memory": 8 << 30, "hugepages": []object{{"page_size": 2048, "num_pages": 64}}, "distances": []int{10 + 10*id, 20 - 10*id}, "cores": cores})
	}
	return object{"num_cores": 16, "num_physical_cores": 8, "num_sockets": 2, "memory_capacity": 16 << 30, "topology": nodes}
}

// asMachineInfo makes cAdvisor's type of it, which later versions have in another package.
func asMachineInfo(m object) reflect.Value {
	f := reflect.TypeOf(cpumanager.NewManager)
	for i := range f.NumIn() {
		if t := f.In(i); t.Kind() == reflect.Pointer && t.Elem().Name() == "MachineInfo" {
			info := reflect.New(t.Elem())
			if err := json.Unmarshal(must(json.Marshal(m)), info.Interface()); err != nil {
				panic(err)
			}
			return info
		}
	}
	panic("cpumanager.NewManager asks for no machine")
}

// sharedPod makes a pod that mostly has resources of its own as a whole, and containers with CPUs of their own, without, and in between.
func sharedPod(r *rand.Rand, name string) object {
	whole := r.Intn(5) > 0
	amounts := func() object {
		return object{"cpu": pick(r, "1", "1", "2", "500m"), "memory": pick(r, "256Mi", "512Mi", "1Gi")}
	}
	sums := map[string]*resource.Quantity{"cpu": {}, "memory": {}}
	names := []string{}
	container := func(name string) object {
		q := object{}
		if kind := r.Intn(5); kind > 0 || !whole {
			q["requests"] = amounts()
			if kind > 1 {
				q["limits"] = q["requests"]
			}
			for n, sum := range sums {
				sum.Add(resource.MustParse(q["requests"].(object)[n].(string)))
			}
		}
		if limits, ok := q["limits"].(object); ok && r.Intn(6) == 0 {
			both := object{"cpu": limits["cpu"], "memory": limits["memory"], "hugepages-2Mi": "4Mi"}
			q["limits"], q["requests"] = both, both
		}
		names = append(names, name)
		return object{"name": name, "image": "app", "resources": q}
	}
	spec := object{}
	if r.Intn(3) == 0 {
		c := container("i")
		if r.Intn(2) == 0 {
			c["restartPolicy"] = "Always"
		}
		spec["initContainers"] = []object{c}
	}
	containers := []object{}
	for _, n := range []string{"a", "b", "c"}[:1+r.Intn(3)] {
		containers = append(containers, container(n))
	}
	spec["containers"] = containers
	if whole {
		cpu, memory := *sums["cpu"], *sums["memory"]
		cpu.Add(resource.MustParse(pick(r, "0", "1", "1", "2", "500m")))
		memory.Add(resource.MustParse(pick(r, "0", "512Mi", "1Gi")))
		if cpu.IsZero() {
			cpu = resource.MustParse("1")
		}
		if memory.IsZero() {
			memory = resource.MustParse("1Gi")
		}
		if r.Intn(2) == 0 {
			cpu.RoundUp(0)
		}
		of := object{"cpu": cpu.String(), "memory": memory.String()}
		spec["resources"] = pick(r, object{"requests": of, "limits": of}, object{"requests": of, "limits": of}, object{"requests": of, "limits": of}, object{"requests": of})
	}
	status := object{"phase": "Pending"}
	if r.Intn(2) == 0 {
		addNodeResources(r, status, names)
	}
	return object{"metadata": object{"name": name, "namespace": "default", "uid": "uid-" + name}, "spec": spec, "status": status}
}

type ready struct{}

func (ready) AddSource(string) {}
func (ready) AllReady() bool   { return true }

type noStatus struct{}

func (noStatus) GetPodStatus(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{}, false }

// recorder keeps what is made of a pod's cgroup.
type recorder struct {
	cm.CgroupManager
	made *cm.ResourceConfig
}

func (*recorder) Exists(cm.CgroupName) bool         { return false }
func (*recorder) Name(cm.CgroupName) string         { return "" }
func (*recorder) CgroupName(s string) cm.CgroupName { return cm.CgroupName{s} }
func method(of any, name string) any                { return reflect.ValueOf(of).MethodByName(name).Interface() }

// askShared lets pods in one by one, and tells the files of the managers and the cgroups of those that are in.
func askShared(in any) any {
	x := in.(shared)
	c := x.Configuration
	setGates(c.FeatureGates)
	dir := must(os.MkdirTemp("", "admission"))
	defer os.RemoveAll(dir)
	active := []*v1.Pod{}
	pods := func() []*v1.Pod { return active }
	info := asMachineInfo(x.Machine)
	reserved := v1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
	topology := call(topologymanager.NewManager, info.Elem().FieldByName("Topology").Interface(), c.TopologyManagerPolicy, c.TopologyManagerScope, map[string]string{})[0].Interface().(topologymanager.Manager)
	cpus := call(cpumanager.NewManager, c.CPUManagerPolicy, c.CPUManagerPolicyOptions, 10000*time.Hour, info.Interface(), cpuset.New(), reserved, dir, topology)[0].Interface().(cpumanager.Manager)
	ofNode := []kubeletconfig.MemoryReservation{{NumaNode: 0, Limits: v1.ResourceList{"memory": resource.MustParse("1Gi")}}}
	memory := call(memorymanager.NewManager, c.MemoryManagerPolicy, info.Interface(), reserved, ofNode, dir, topology)[0].Interface().(memorymanager.Manager)
	for _, m := range []any{cpus, memory} {
		call(method(m, "Start"), pods, ready{}, noStatus{}, nil, containermap.NewContainerMap())
		call(method(topology, "AddHintProvider"), m)
	}
	steps := []object{}
	for _, p := range x.Pods {
		pod := decode[v1.Pod](p)
		before := active
		active = append(append([]*v1.Pod{}, before...), pod)
		result := admitted(topology, pod, before)
		if !result.Admit {
			active = before
		}
		// what a pod left that was refused is taken back before others are asked about
		for _, m := range []any{cpus, memory} {
			call(method(m, "GetPodTopologyHints"), &v1.Pod{})
		}
		steps = append(steps, object{"admit": result.Admit, "reason": result.Reason, "message": result.Message})
	}
	out := object{"steps": steps}
	for _, name := range []string{"cpu_manager_state", "memory_manager_state"} {
		out[name] = string(must(os.ReadFile(filepath.Join(dir, name))))
	}
	addCgroups(out, info.Interface(), active, cpus)
	return out
}

func addCgroups(out object, info any, active []*v1.Pod, cpus cpumanager.Manager) {
	runtime.KeepAlive(kept)
	rec := &recorder{}
	tiers := newOf("cm.qosContainerManagerImpl", "kubelet/cm", object{"activePods": func() []*v1.Pod { return active }})
	containerManager := newOf("cm.containerManagerImpl", "kubelet/cm", object{
		"cpuManager": cpus, "cgroupManager": rec, "qosContainerManager": tiers.Interface(),
		"NodeConfig": cm.NodeConfig{CgroupsPerQOS: true, EnforceCPULimits: true, CPUCFSQuotaPeriod: 100 * time.Millisecond},
	}).Interface().(cm.ContainerManager)
	manager := newOf("kuberuntime.kubeGenericRuntimeManager", "kubelet/kuberuntime", object{
		"cpuCFSQuota": true, "cpuCFSQuotaPeriod": metav1.Duration{Duration: 100 * time.Millisecond}, "machineInfo": info,
		"containerManager": containerManager, "getSwapControllerAvailable": func() bool { return false },
	})
	ofPods, containers := object{}, object{}
	for _, pod := range active {
		call(method(containerManager.NewPodContainerManager(), "EnsureExists"), pod)
		made := object{"memory": rec.made.Memory, "cpuShares": rec.made.CPUShares, "cpuQuota": rec.made.CPUQuota, "cpuPeriod": rec.made.CPUPeriod}
		if len(rec.made.HugePageLimit) > 0 {
			made["hugePageLimit"] = rec.made.HugePageLimit
		}
		ofPods[pod.Name] = made
		for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
			for i := range list {
				l := generateLinuxContainerResources(manager.UnsafePointer(), background, pod, &list[i], false)
				pages := object{}
				for _, h := range l.HugepageLimits {
					pages[h.PageSize] = h.Limit
				}
				containers[pod.Name+"/"+list[i].Name] = object{"cpuPeriod": l.CpuPeriod, "cpuQuota": l.CpuQuota, "cpuShares": l.CpuShares,
					"memoryLimitBytes": l.MemoryLimitInBytes, "oomScoreAdj": l.OomScoreAdj, "hugepageLimits": pages}
			}
		}
	}
	configs := map[v1.PodQOSClass]*cm.CgroupConfig{}
	for _, class := range []v1.PodQOSClass{v1.PodQOSBurstable, v1.PodQOSBestEffort} {
		configs[class] = &cm.CgroupConfig{ResourceParameters: &cm.ResourceConfig{}}
	}
	must(0, setCPUCgroupConfig(tiers.UnsafePointer(), configs))
	out["pods"], out["containers"], out["burstableShares"] = ofPods, containers, configs[v1.PodQOSBurstable].ResourceParameters.CPUShares
}
