package main

import (
	"reflect"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/preemption"
)

func init() {
	suites["admission"] = suite{answer: asking(askAdmission)}
	suites["preemption"] = suite{answer: asking(askPreemption)}
}

// killer makes the handler of pods that have to get in, and the list of those that it kills.
func killer(pods []*v1.Pod) (*preemption.CriticalPodAdmissionHandler, *[]string) {
	killed := &[]string{}
	kill := func(pod *v1.Pod, _ bool, _ *int64, _ func(*v1.PodStatus)) error {
		*killed = append(*killed, pod.Namespace+"/"+pod.Name)
		return nil
	}
	return preemption.NewCriticalPodAdmissionHandler(func() []*v1.Pod { return pods }, kill, &record.FakeRecorder{}), killed
}

type admissionIn struct {
	Node      *v1.Node
	Pod       *v1.Pod
	OtherPods []*v1.Pod
}

func askAdmission(in admissionIn) (any, error) {
	critical, killed := killer(in.OtherPods)
	node := func() (*v1.Node, error) { return in.Node, nil }
	handler, err := first[lifecycle.PodAdmitHandler](call(lifecycle.NewPredicateAdmitHandler, node, critical))
	if err != nil {
		return nil, err
	}
	attributes := &lifecycle.PodAdmitAttributes{Pod: in.Pod, OtherPods: in.OtherPods}
	if f := reflect.ValueOf(attributes).Elem().FieldByName("Operation"); f.IsValid() {
		f.SetString("add")
	}
	result, err := first[lifecycle.PodAdmitResult](call(handler.Admit, attributes))
	return object{"admit": result.Admit, "reason": result.Reason, "message": result.Message, "preempted": *killed}, err
}

type preemptionIn struct {
	Pod            *v1.Pod
	Pods           []*v1.Pod
	FailureReasons []struct {
		Resource                  v1.ResourceName
		Requested, Used, Capacity int64
		Predicate                 string
	}
}

func askPreemption(in preemptionIn) (any, error) {
	critical, killed := killer(in.Pods)
	var reasons []lifecycle.PredicateFailureReason
	for _, r := range in.FailureReasons {
		if r.Predicate != "" {
			reasons = append(reasons, &lifecycle.PredicateFailureError{PredicateName: r.Predicate, PredicateDesc: r.Predicate})
		} else {
			insufficient := lifecycle.InsufficientResourceError{ResourceName: r.Resource, Requested: r.Requested, Used: r.Used, Capacity: r.Capacity}
			reasons = append(reasons, &insufficient)
		}
	}
	remaining, err := call(critical.HandleAdmissionFailure, in.Pod, reasons)
	if remaining == nil {
		return nil, err
	}
	out := object{"killed": *killed, "remainingReasons": len(remaining[0].([]lifecycle.PredicateFailureReason))}
	if err != nil {
		out["error"] = err.Error()
	}
	return out, nil
}
