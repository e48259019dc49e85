package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/prober"
	"k8s.io/kubernetes/pkg/kubelet/prober/results"
	"k8s.io/kubernetes/pkg/kubelet/status"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
	utilexec "k8s.io/utils/exec"
)

// The probes of a case run for its seconds, so all cases run at once. Where a busy machine comes too late to one, the case begins anew.
func init() {
	suites["prober"] = suite{answer: asking(askProber), times: 2, atOnce: 1000}
}

// afterStart is past the time in which a new prober manager delays its workers, newContainer what a container takes to be replaced, and
// late what an attempt or a new container may be late.
const (
	afterStart   = 2500 * time.Millisecond
	newContainer = 450 * time.Millisecond
	late         = 150 * time.Millisecond
)

// Script has the answers to the attempts of a probe: ok, fail or error; the last one repeats.
type proberIn struct {
	Probes           map[string]*v1.Probe
	Script           map[string][]string
	RestartOnFailure bool
	Seconds          time.Duration
}

// probed is a pod with a container that is probed, and what happened to it.
type probed struct {
	in       proberIn
	pod      *v1.Pod
	statuses status.Manager
	mu       sync.Mutex
	began    time.Time
	asked    map[string]int
	restarts int
	tooLate  bool
	attempts map[string][]string
	results  map[string][]string
}

func (p *probed) GetPodByUID(types.UID) (*v1.Pod, bool)     { return p.pod, true }
func (p *probed) GetMirrorPodByPod(*v1.Pod) (*v1.Pod, bool) { return nil, false }
func (p *probed) TranslatePodUID(uid types.UID) kubetypes.ResolvedPodUID {
	return kubetypes.ResolvedPodUID(uid)
}
func (p *probed) GetUIDTranslations() (map[kubetypes.ResolvedPodUID]kubetypes.MirrorPodUID, map[kubetypes.MirrorPodUID]kubetypes.ResolvedPodUID) {
	return nil, nil
}
func (p *probed) PodCouldHaveRunningContainers(*v1.Pod) bool { return true }

// RunInContainer is an attempt of a probe, whose name is its command.
func (p *probed) RunInContainer(_ context.Context, id kubecontainer.ContainerID, command []string, _ time.Duration) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := command[0]
	script := p.in.Script[name]
	answer := script[min(p.asked[name], len(script)-1)]
	p.asked[name]++
	since := time.Since(p.began)
	p.tooLate = p.tooLate || since%time.Second > late || since > p.in.Seconds*time.Second
	p.attempts[name] = append(p.attempts[name], fmt.Sprintf("%ds %s %s", since/time.Second, id.ID, answer))
	switch answer {
	case "ok":
		return []byte("ok"), nil
	case "fail":
		return []byte("bad"), &utilexec.CodeExitError{Err: errors.New("exit 1"), Code: 1}
	}
	return nil, errors.New("the runtime cannot be asked")
}

// run tells the status manager that the container runs, which is another one after each restart.
func (p *probed) run() error {
	started := p.in.Probes["startup"] == nil
	_, err := call(p.statuses.SetPodStatus, p.pod, v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{{
		Name: "c", ContainerID: fmt.Sprintf("test://c%d", p.restarts), RestartCount: int32(p.restarts), Started: &started,
		State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}},
	}}})
	return err
}

// watch passes the results of a probe on, as the kubelet's sync loop does.
func (p *probed) watch(ctx context.Context, name string, manager results.Manager) {
	for {
		select {
		case <-ctx.Done():
			return
		case update := <-manager.Updates():
			p.take(name, update)
		}
	}
}

func (p *probed) take(name string, update results.Update) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results[name] = append(p.results[name], update.ContainerID.ID+" "+update.Result.String())
	good := update.Result == results.Success
	switch name {
	case "startup":
		_, _ = call(p.statuses.SetContainerStartup, update.PodUID, update.ContainerID, good)
	case "readiness":
		_, _ = call(p.statuses.SetContainerReadiness, update.PodUID, update.ContainerID, good)
	}
	if p.in.RestartOnFailure && name != "readiness" && update.Result == results.Failure {
		failed := time.Now()
		time.AfterFunc(newContainer, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.tooLate = p.tooLate || time.Since(failed) > newContainer+late
			p.restarts++
			_ = p.run()
		})
	}
}

// newProbed gives the probes of a case the handlers that its script answers.
func newProbed(in proberIn) (*probed, error) {
	c := v1.Container{Name: "c", Image: "app"}
	for name, probe := range in.Probes {
		if len(in.Script[name]) == 0 {
			return nil, fmt.Errorf("the script has no answer of %q", name)
		}
		probe.ProbeHandler = v1.ProbeHandler{Exec: &v1.ExecAction{Command: []string{name}}}
	}
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = in.Probes["liveness"], in.Probes["readiness"], in.Probes["startup"]
	return &probed{
		in: in, asked: map[string]int{}, attempts: map[string][]string{}, results: map[string][]string{},
		pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "d", UID: "u"},
			Spec:       v1.PodSpec{Containers: []v1.Container{c}, RestartPolicy: v1.RestartPolicyAlways},
		},
	}, nil
}

func askProber(in proberIn) (out any, err error) {
	for range tries {
		p, err := newProbed(in)
		if err != nil {
			return nil, err
		}
		out, err := p.observe()
		if err != nil || !p.tooLate {
			return out, err
		}
	}
	return nil, errTooLate
}

func (p *probed) observe() (out any, err error) {
	if p.statuses, err = first[status.Manager](call(status.NewManager, p, p)); err != nil {
		return nil, err
	}
	liveness, readiness, startup := results.NewManager(), results.NewManager(), results.NewManager()
	manager, err := first[prober.Manager](call(prober.NewManager, p.statuses, liveness, readiness, startup, p, &record.FakeRecorder{}))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	go p.watch(ctx, "liveness", liveness)
	go p.watch(ctx, "readiness", readiness)
	go p.watch(ctx, "startup", startup)
	time.Sleep(afterStart)
	p.began = time.Now()
	if err := p.run(); err != nil {
		return nil, err
	}
	if _, err := call(manager.AddPod, p.pod); err != nil {
		return nil, err
	}
	// a tick at the very end is left out
	time.Sleep(p.in.Seconds*time.Second - late)
	p.mu.Lock()
	defer p.mu.Unlock()
	return textOf(object{"attempts": p.attempts, "results": p.results, "restarts": p.restarts})
}
