// Answers of a kubelet's own functions about pods that come in: vectors of test/vectors. Built with `-ldflags=-checklinkname=0` in a module
// that requires k8s.io/kubernetes v1.X.Y with its staging modules replaced by their v0.X.Y (1.34 to 1.37; 1.34 with the tag k134).
// What differs between them in Go is called by reflection.
//
//	admission claimed SEED COUNT   whether a node takes a pod, with extended resources that a claim gives and CPUs and memory of claims
//	admission shared SEED COUNT    what the managers give to pods with resources of their own as a whole, and the cgroups that they get
//
// Each case is asked 21 times; those whose answers differ (Go's maps choose) are left out.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"strconv"
	"strings"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/kubelet/preemption"
	schedulerframework "k8s.io/kubernetes/pkg/scheduler/framework"
)

type object = map[string]any

var background = context.Background()

func main() {
	klog.SetOutput(os.Stderr)
	klog.LogToStderr(false)
	klog.SetLogger(klog.Logger{})
	seed, _ := strconv.ParseInt(os.Args[2], 10, 64)
	count, _ := strconv.Atoi(os.Args[3])
	gen, ask := genClaimed, askClaimed
	if os.Args[1] == "shared" {
		gen, ask = genShared, askShared
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for i, kept := 0, 0; kept < count; i++ {
		in := gen(rand.New(rand.NewSource(seed + int64(i))))
		first, stable := ask(in), true
		for range 20 {
			stable = stable && reflect.DeepEqual(first, ask(in))
		}
		if !stable {
			fmt.Fprintln(os.Stderr, "unstable", i)
			continue
		}
		kept++
		out.Encode(object{"name": fmt.Sprintf("%s-%d-%d", os.Args[1], seed, i), "in": in, "out": first})
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
func pick[T any](r *rand.Rand, xs ...T) T { return xs[r.Intn(len(xs))] }
func decode[T any](x any) *T {
	t := new(T)
	if err := json.Unmarshal(must(json.Marshal(x)), t); err != nil {
		panic(err)
	}
	return t
}

// knows tells whether the version has a gate that may be set.
func knows(gate string) bool {
	spec, ok := utilfeature.DefaultMutableFeatureGate.GetAll()[featuregate.Feature(gate)]
	return ok && !spec.LockToDefault
}

var gatesAsTheyWere = map[string]bool{}

// setGates sets these gates and no others.
func setGates(gates map[string]bool) {
	for name := range gates {
		if _, ok := gatesAsTheyWere[name]; !ok {
			gatesAsTheyWere[name] = utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(name))
		}
	}
	all := map[string]bool{}
	for name, on := range gatesAsTheyWere {
		all[name] = on
	}
	for name, on := range gates {
		all[name] = on
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(all); err != nil {
		panic(err)
	}
}

// call calls a function whose parameters differ between versions: contexts and loggers are filled in, what follows the arguments is zero.
func call(f any, args ...any) []reflect.Value {
	v := reflect.ValueOf(f)
	in := []reflect.Value{}
	for i := range v.Type().NumIn() {
		t := v.Type().In(i)
		switch {
		case t == reflect.TypeFor[context.Context]():
			in = append(in, reflect.ValueOf(background))
		case t == reflect.TypeFor[klog.Logger]():
			in = append(in, reflect.ValueOf(klog.Background()))
		case len(args) == 0 || args[0] == nil:
			in, args = append(in, reflect.Zero(t)), args[min(1, len(args)):]
		default:
			in, args = append(in, reflect.ValueOf(args[0]).Convert(t)), args[1:]
		}
	}
	out := v.Call(in)
	if n := len(out); n > 0 {
		if err, ok := out[n-1].Interface().(error); ok && err != nil {
			panic(err)
		}
	}
	return out
}

//go:linkname typesByString reflect.typesByString
func typesByString(s string) []unsafe.Pointer

// newOf makes a zero value of a type that its package keeps to itself, with these fields; those that it does not have are left out.
func newOf(name, of string, fields object) reflect.Value {
	for _, t := range typesByString("*" + name) {
		var x any
		(*[2]unsafe.Pointer)(unsafe.Pointer(&x))[0] = t
		if elem := reflect.TypeOf(x).Elem(); strings.HasSuffix(elem.PkgPath(), of) {
			v := reflect.New(elem)
			for field, value := range fields {
				if f := v.Elem().FieldByName(field); f.IsValid() {
					reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem().Set(reflect.ValueOf(value))
				}
			}
			return v
		}
	}
	panic("there is no " + name)
}

// attributes of an admission; later versions know which operation it is for.
func attributes(pod *v1.Pod, others []*v1.Pod) *lifecycle.PodAdmitAttributes {
	a := &lifecycle.PodAdmitAttributes{Pod: pod, OtherPods: others}
	if f := reflect.ValueOf(a).Elem().FieldByName("Operation"); f.IsValid() {
		f.SetString("add")
	}
	return a
}
func admitted(handler any, pod *v1.Pod, others []*v1.Pod) lifecycle.PodAdmitResult {
	return call(reflect.ValueOf(handler).MethodByName("Admit").Interface(), attributes(pod, others))[0].Interface().(lifecycle.PodAdmitResult)
}

type claimed struct {
	FeatureGates map[string]bool `json:"featureGates,omitempty"`
	Node         object          `json:"node"`
	Pod          object          `json:"pod"`
	OtherPods    []object        `json:"otherPods"`
}

// askClaimed asks the predicate handler with the handler of critical pods behind it.
func askClaimed(in any) any {
	x := in.(claimed)
	setGates(x.FeatureGates)
	node, pod := decode[v1.Node](x.Node), decode[v1.Pod](x.Pod)
	others := []*v1.Pod{}
	for _, p := range x.OtherPods {
		others = append(others, decode[v1.Pod](p))
	}
	killed := []string{}
	kill := func(p *v1.Pod, _ bool, _ *int64, _ func(*v1.PodStatus)) error {
		killed = append(killed, p.Namespace+"/"+p.Name)
		return nil
	}
	critical := preemption.NewCriticalPodAdmissionHandler(func() []*v1.Pod { return others }, kill, &record.FakeRecorder{})
	theNode := reflect.MakeFunc(reflect.TypeOf(lifecycle.NewPredicateAdmitHandler).In(0), func([]reflect.Value) []reflect.Value {
		return []reflect.Value{reflect.ValueOf(node), reflect.Zero(reflect.TypeFor[error]())}
	})
	nothing := func(*schedulerframework.NodeInfo, *lifecycle.PodAdmitAttributes) error { return nil }
	r := admitted(call(lifecycle.NewPredicateAdmitHandler, theNode.Interface(), critical, nothing)[0].Interface(), pod, others)
	return object{"admit": r.Admit, "reason": r.Reason, "message": r.Message, "preempted": killed}
}
