//go:build k136

package main

import (
	"context"
	"time"

	cadvisor "github.com/google/cadvisor/info/v1"
	noopoteltrace "go.opentelemetry.io/otel/trace/noop"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	internalapi "k8s.io/cri-api/pkg/apis"
	apitest "k8s.io/cri-api/pkg/apis/testing"
	"k8s.io/klog/v2"
	kubemanager "k8s.io/kubernetes/pkg/kubelet/allocation"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/kuberuntime"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/logs"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
	"k8s.io/kubernetes/pkg/kubelet/runtimeclass"
	"k8s.io/kubernetes/plugin/pkg/admission/nodedeclaredfeatures"
	"k8s.io/kubernetes/plugin/pkg/admission/podresize"
)

// Whether quotas of exclusive CPUs may stay, and memoryThrottlingFactor may be left out.
const quotaMayBeLeft, factorMayLack = true, false

var reservations = []string{"None", "TieredReservation"}

const volumesAreResized = false
const podLevelIsResized = true

var gatesTried = []map[string]bool{nil, nil, nil, {"InPlacePodVerticalScalingExclusiveCPUs": true}, {"InPlacePodVerticalScalingExclusiveMemory": true}, {"InPlacePodLevelResourcesVerticalScaling": false}}

type manager struct{ kubemanager.Manager }

func (m manager) set(p *v1.Pod)      { m.SetAllocatedResources(p) }
func (m manager) push(uid types.UID) { m.PushPendingResize(uid) }
func (m manager) retry()             { m.RetryPendingResizes("periodic_retry") }

func newAllocations(p allocationParts) allocations {
	m := kubemanager.NewInMemoryManager(p.statuses, func(*v1.Pod) {}, p.active, p.byUID, p.sources, p.recorder)
	m.SetContainerRuntime(p.runtime)
	node := func(context.Context, bool) (*v1.Node, error) { return p.node, nil }
	m.AddPodAdmitHandlers(lifecycle.PodAdmitHandlers{
		kubemanager.NewPodResizesAdmitHandler(p.manager, p.runtime, m, klog.Background()),
		lifecycle.NewPredicateAdmitHandler(node, p.critical, p.manager.UpdatePluginResources),
	})
	return manager{m}
}

func (p *podCgroups) SetPodCgroupConfig(_ klog.Logger, _ *v1.Pod, c *cm.ResourceConfig) error {
	p.write(c)
	return nil
}
func (m recordingManager) PodHasExclusiveCPUs(_ *v1.Pod) bool { return m.exclusive.Len() > 0 }
func (m recordingManager) ContainerHasExclusiveCPUs(_ *v1.Pod, c *v1.Container) bool {
	return m.exclusive.Has(c.Name)
}
func configOf(pod *v1.Pod, quota bool) *cm.ResourceConfig {
	return cm.ResourceConfigForPod(pod, quota, 100000, false, kubeletconfig.NoneMemoryReservationPolicy)
}
func activate(s *kubecontainer.PodStatus) { s.ActiveContainerStatuses = s.ContainerStatuses }

func newRuntime(c configuration, m cm.ContainerManager, service internalapi.RuntimeService, helper kubecontainer.RuntimeHelper) kubecontainer.Runtime {
	if service == nil {
		service = apitest.NewFakeRuntimeService()
	}
	images := apitest.NewFakeImageService()
	images.SetFakeImages([]string{"app", "app:latest"})
	quota := c.CPUCFSQuota == nil || *c.CPUCFSQuota
	r, _, err := kuberuntime.NewKubeGenericRuntimeManager(background, &record.FakeRecorder{}, results.NewManager(), results.NewManager(), results.NewManager(),
		root, root, &cadvisor.MachineInfo{MemoryCapacity: 16 << 30, SwapCapacity: 4 << 30}, podStates{}, 110, kubecontainer.RealOS{}, helper, nil, flowcontrol.NewBackOff(time.Second, time.Minute),
		false, nil, 0, 0, "NeverVerify", nil, "", "", c.SingleProcessOOMKill, quota, metav1.Duration{Duration: 100 * time.Millisecond}, service, images, m, logs.NewStubContainerLogManager(), runtimeclass.NewManager(nil),
		false, c.MemorySwap["swapBehavior"], allocatable, c.factor(), kubeletconfig.MemoryReservationPolicy(c.MemoryReservationPolicy), noTimes{}, noopoteltrace.NewTracerProvider(), nil, nil, noTimes{})
	if err != nil {
		panic(err)
	}
	return r
}
func syncPod(r kubecontainer.Runtime, pod *v1.Pod, s *kubecontainer.PodStatus) kubecontainer.PodSyncResult {
	return r.SyncPod(background, pod, s, nil, flowcontrol.NewBackOff(time.Second, time.Minute), false)
}

// Names of features that a node tells of and that resizes need, and gates that change what is refused.
var updateFeatures, refusalGates = []string{"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"}, []map[string]bool{nil, nil, {"InPlacePodVerticalScalingInitContainers": false}}

func declare(node *v1.Node, features []string) { node.Status.DeclaredFeatures = features }
func claimNodeResources(pod *v1.Pod) {
	pod.Status.NodeAllocatableResourceClaimStatuses = []v1.NodeAllocatableResourceClaimStatus{{ResourceClaimName: "cpus", Resources: v1.ResourceList{"cpu": quantity("1")}}}
}
func resizePlugins() []resizePlugin {
	features, _ := nodedeclaredfeatures.NewPlugin()
	resizes, _ := podresize.NewPlugin()
	return []resizePlugin{features, resizes}
}
