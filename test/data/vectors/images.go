package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	noopoteltrace "go.opentelemetry.io/otel/trace/noop"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	containertest "k8s.io/kubernetes/pkg/kubelet/container/testing"
	"k8s.io/kubernetes/pkg/kubelet/images"
)

// The steps of image-gc are taken in real time. Where a busy machine comes too late to one, the case begins anew.
func init() {
	suites["image-gc"] = suite{answer: asking(askImageGC), times: 2, atOnce: 16}
}

const (
	tooLate = 15 * time.Millisecond
	tries   = 30
)

var errTooLate = errors.New("the machine is too busy: it came too late each time")

type imageGCIn struct {
	HighThresholdPercent, LowThresholdPercent int
	MinAgeMs, MaxAgeMs                        time.Duration
	Steps                                     []imageGCStep
}
type imageGCStep struct {
	AtMs   time.Duration
	Images []struct {
		ID        string
		SizeBytes int64
		Pinned    bool
	}
	InUse                         []string
	AvailableBytes, CapacityBytes uint64
	Op                            string
}

// imageNode is a runtime with images, and the file system that they are on.
type imageNode struct {
	*containertest.FakeRuntime
	step    imageGCStep
	removed []string
	gone    map[string]bool
}

func (n *imageNode) RemoveImage(ctx context.Context, image kubecontainer.ImageSpec) error {
	n.removed = append(n.removed, image.Image)
	n.gone[image.Image] = true
	return n.FakeRuntime.RemoveImage(ctx, image)
}

func (n *imageNode) ImageFsStats(context.Context) (*statsapi.FsStats, *statsapi.FsStats, error) {
	s := &statsapi.FsStats{AvailableBytes: &n.step.AvailableBytes, CapacityBytes: &n.step.CapacityBytes}
	return s, s, nil
}

// begin gives the node what a step has. An image that was removed stays away.
func (n *imageNode) begin(step imageGCStep) {
	n.step, n.removed, n.ImageList = step, []string{}, nil
	for _, image := range step.Images {
		if !n.gone[image.ID] {
			n.ImageList = append(n.ImageList, kubecontainer.Image{ID: image.ID, Size: image.SizeBytes, Pinned: image.Pinned})
		}
	}
	pod := &kubecontainer.Pod{ID: "p"}
	for _, id := range step.InUse {
		container := &kubecontainer.Container{ID: kubecontainer.ContainerID{Type: "test", ID: "c" + id}, Image: id, ImageID: id}
		pod.Containers = append(pod.Containers, container)
	}
	n.AllPodList = []*containertest.FakePod{{Pod: pod}}
}

type imageGCAnswer struct {
	Removed []string `json:"removed"`
	Error   string   `json:"error,omitempty"`
	Events  []string `json:"events"`
}

func askImageGC(in imageGCIn) (out any, err error) {
	for range tries {
		if out, err = stepsOf(in); err != errTooLate {
			break
		}
	}
	return out, err
}

func stepsOf(in imageGCIn) (any, error) {
	n := &imageNode{FakeRuntime: &containertest.FakeRuntime{}, gone: map[string]bool{}}
	events := record.NewFakeRecorder(100)
	policy := images.ImageGCPolicy{
		HighThresholdPercent: in.HighThresholdPercent, LowThresholdPercent: in.LowThresholdPercent,
		MinAge: in.MinAgeMs * time.Millisecond, MaxAge: in.MaxAgeMs * time.Millisecond,
	}
	m, err := images.NewImageGCManager(n, n, nil, events, &v1.ObjectReference{}, policy, noopoteltrace.NewTracerProvider())
	if err != nil {
		return object{"policyError": err.Error()}, nil
	}
	start := time.Now()
	var steps []imageGCAnswer
	for _, step := range in.Steps {
		time.Sleep(time.Until(start.Add(step.AtMs * time.Millisecond)))
		n.begin(step)
		switch step.Op {
		case "garbage-collect":
			_, err = call(m.GarbageCollect, start)
		case "delete-unused":
			_, err = call(m.DeleteUnusedImages)
		default:
			return nil, fmt.Errorf("there is no operation %q", step.Op)
		}
		if time.Since(start) > step.AtMs*time.Millisecond+tooLate {
			return nil, errTooLate
		}
		a := imageGCAnswer{Removed: n.removed, Events: []string{}}
		if err != nil {
			a.Error = err.Error()
		}
		for len(events.Events) > 0 {
			a.Events = append(a.Events, <-events.Events)
		}
		steps = append(steps, a)
	}
	return object{"steps": steps}, nil
}
