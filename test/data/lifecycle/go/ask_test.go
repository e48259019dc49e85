// Answers of the kubelet 1.36.3's own functions to the pods of ends.jsonl.gz and kubelet.jsonl.gz. Laid as pkg/kubelet/ask_test.go
// into a copy of k8s.io/kubernetes v1.36.3 (its staging modules replaced by their v0.36.3), ask_export.go into pkg/kubelet/status;
// courses without answers in, the answers out, line by line: the files that ASK_IN and ASK_OUT name.
package kubelet

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	containertest "k8s.io/kubernetes/pkg/kubelet/container/testing"
	"k8s.io/kubernetes/pkg/kubelet/prober"
	"k8s.io/kubernetes/pkg/kubelet/status"
	"k8s.io/kubernetes/test/utils/ktesting"
)

type askContainer struct {
	ID, Name, SandboxID, State, Reason, Message, Image, ImageID string
	Attempt, ExitCode                                           int
	CreatedAtMs                                                 int64
	StartedAtMs, FinishedAtMs                                   *int64
}
type askSeen struct {
	Sandboxes []struct {
		ID          string
		Attempt     uint32
		IsReady     bool
		CreatedAtMs int64
		IPs         []string
	}
	Containers []askContainer
}
type askEnd struct {
	Cause, Reason, Message string
	IsDisruption           *bool
}
type askCase struct {
	Object   v1.Pod
	Previous *v1.PodStatus
	State    string
	Errors   map[string]struct{ Reason, Message string }
	End      *askEnd
	Seen     askSeen
	// of a course
	Stopped *askSeen
}

func askMs(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return time.UnixMilli(*ms)
}

func askStatus(c askCase, seen askSeen) *kubecontainer.PodStatus {
	s := &kubecontainer.PodStatus{ID: c.Object.UID, Name: c.Object.Name, Namespace: c.Object.Namespace}
	active := ""
	for i, sb := range seen.Sandboxes {
		state := runtimeapi.PodSandboxState_SANDBOX_NOTREADY
		if sb.IsReady {
			state = runtimeapi.PodSandboxState_SANDBOX_READY
		}
		r := &runtimeapi.PodSandboxStatus{Id: sb.ID, State: state, CreatedAt: sb.CreatedAtMs * 1e6,
			Metadata: &runtimeapi.PodSandboxMetadata{Attempt: sb.Attempt, Name: c.Object.Name, Namespace: c.Object.Namespace, Uid: string(c.Object.UID)},
			Network:  &runtimeapi.PodSandboxNetworkStatus{}, Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: &runtimeapi.NamespaceOption{}}}}
		if len(sb.IPs) > 0 {
			r.Network.Ip = sb.IPs[0]
		}
		s.SandboxStatuses = append(s.SandboxStatuses, r)
		if i == 0 {
			if sb.IsReady {
				s.IPs = sb.IPs
			}
			active = sb.ID
		}
	}
	for _, k := range seen.Containers {
		st := map[string]kubecontainer.State{"created": kubecontainer.ContainerStateCreated, "running": kubecontainer.ContainerStateRunning, "exited": kubecontainer.ContainerStateExited, "unknown": kubecontainer.ContainerStateUnknown}[k.State]
		x := &kubecontainer.Status{ID: kubecontainer.ContainerID{Type: "containerd", ID: k.ID}, Name: k.Name, State: st, CreatedAt: time.UnixMilli(k.CreatedAtMs),
			StartedAt: askMs(k.StartedAtMs), FinishedAt: askMs(k.FinishedAtMs), ExitCode: k.ExitCode, Image: k.Image, ImageID: k.ImageID, ImageRef: k.ImageID, RestartCount: k.Attempt, Reason: k.Reason, Message: k.Message}
		s.ContainerStatuses = append(s.ContainerStatuses, x)
		if k.SandboxID == active {
			s.ActiveContainerStatuses = append(s.ActiveContainerStatuses, x)
		}
	}
	return s
}

type askRuntime struct {
	*containertest.FakeRuntime
	onKill func()
}

func (r askRuntime) KillPod(ctx context.Context, pod *v1.Pod, p kubecontainer.Pod, g *int64) error {
	r.onKill()
	return nil
}

func TestAsk(t *testing.T) {
	in, err := os.Open(os.Getenv("ASK_IN"))
	if err != nil {
		t.Fatal(err)
	}
	out, _ := os.Create(os.Getenv("ASK_OUT"))
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)
	logger, ctx := ktesting.NewTestContext(t)
	for lines.Scan() {
		var c askCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		tk := newTestKubelet(t, false)
		kl := tk.kubelet
		kl.probeManager = prober.NewManager(kl.statusManager, kl.livenessManager, kl.readinessManager, kl.startupManager, kl.runner, kl.recorder)
		for name, e := range c.Errors {
			kl.reasonCache.add(c.Object.UID, name, errors.New(e.Reason), e.Message)
		}
		pod := c.Object.DeepCopy()
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{"kubernetes.io/config.source": "api"}
		}
		told := v1.PodStatus{Phase: v1.PodPending}
		pod.Status.Phase = v1.PodPending
		if c.Previous != nil {
			pod.Status = *c.Previous.DeepCopy()
			told = *c.Previous.DeepCopy()
			if c.End != nil && c.End.Cause == "deadline" {
				st := metav1.NewTime(kl.clock.Now().Add(-time.Hour))
				told.StartTime = &st
			}
			kl.statusManager.SetPodStatus(logger, pod, told)
		}
		var fn func(*v1.PodStatus)
		if c.End != nil && c.End.Reason != "" && c.End.Cause != "deadline" {
			fn = func(s *v1.PodStatus) {
				s.Phase = v1.PodFailed
				s.Reason = c.End.Reason
				s.Message = c.End.Message
				if c.End.IsDisruption == nil {
					podutil.UpdatePodCondition(s, &v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonTerminationByKubelet, Message: "m"})
				}
			}
		}
		if c.End != nil && c.End.Cause == "deadline" {
			st := metav1.NewTime(kl.clock.Now().Add(-time.Hour))
			pod.Status.StartTime = &st
			told.StartTime = &st
			kl.statusManager.SetPodStatus(logger, pod, pod.Status)
		}
		if fn == nil && c.End == nil { // ends by itself: SyncPod has told a status
			s := kl.generateAPIPodStatus(ctx, pod, askStatus(c, c.Seen), false)
			kl.statusManager.SetPodStatus(logger, pod, s)
		}
		type stage struct {
			Cached, Told v1.PodStatus
		}
		answer := map[string]stage{}
		tell := func(name string, couldRun bool) {
			s, _ := kl.statusManager.GetPodStatus(pod.UID)
			told = status.AskMerge(pod, told, *s.DeepCopy(), couldRun)
			answer[name] = stage{s, *told.DeepCopy()}
			pod.Status = *told.DeepCopy()
		}
		if c.Stopped != nil {
			s := kl.generateAPIPodStatus(ctx, pod, askStatus(c, c.Seen), false)
			kl.statusManager.SetPodStatus(logger, pod, s)
			tell("lives", true)
		}
		if c.End != nil && c.End.Cause == "deadline" {
			s := int64(1)
			pod.Spec.ActiveDeadlineSeconds = &s
		}
		stopped := c.Seen
		if c.Stopped != nil {
			stopped = *c.Stopped
		}
		rt := askRuntime{tk.fakeRuntime, func() { tell("terminating", true) }}
		kl.containerRuntime = rt
		tk.fakeRuntime.PodStatus = *askStatus(c, stopped)
		runs := false
		for _, k := range stopped.Containers {
			runs = runs || k.State == "running"
		}
		err := kl.SyncTerminatingPod(ctx, pod, askStatus(c, c.Seen), nil, fn)
		if err == nil {
			tell("stopped", false)
			if err := kl.SyncTerminatedPod(ctx, pod, askStatus(c, stopped)); err != nil {
				t.Fatal(err)
			}
			tell("terminated", false)
		} else if !runs {
			t.Fatal(err)
		}
		b, _ := json.Marshal(answer)
		out.Write(append(b, '\n'))
		tk.Cleanup()
	}
	out.Close()
}
