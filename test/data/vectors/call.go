package main

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/klog/v2"
)

var (
	contextType = reflect.TypeFor[context.Context]()
	loggerType  = reflect.TypeFor[klog.Logger]()
	errorType   = reflect.TypeFor[error]()
)

// call calls a function whose parameters differ between versions, and gives its results, with the error apart. Contexts, loggers and the
// operation ("add") are filled in. Each other parameter takes the next argument if that fits, and otherwise is zero, or a function that
// answers zeros. A function without parameters fits for those that have some.
func call(f any, args ...any) ([]any, error) {
	v := reflect.ValueOf(f)
	in := []reflect.Value{}
	for i := range v.Type().NumIn() {
		t := v.Type().In(i)
		switch {
		case t == contextType:
			in = append(in, reflect.ValueOf(background))
		case t == loggerType:
			in = append(in, reflect.ValueOf(klog.Background()))
		case t.Kind() == reflect.String && t.Name() == "Operation":
			in = append(in, reflect.ValueOf("add").Convert(t))
		case len(args) > 0 && fits(t, reflect.TypeOf(args[0])):
			in, args = append(in, asType(t, reflect.ValueOf(args[0]))), args[1:]
		case t.Kind() == reflect.Func:
			in = append(in, answeringZeros(t))
		default:
			in = append(in, reflect.Zero(t))
		}
	}
	if len(args) > 0 {
		return nil, fmt.Errorf("%s takes no %T where it is given one", v.Type(), args[0])
	}
	return splitError(v.Call(in))
}

func splitError(out []reflect.Value) (list []any, err error) {
	if n := len(out); n > 0 && out[n-1].Type() == errorType {
		err, _ = out[n-1].Interface().(error)
		out = out[:n-1]
	}
	for _, v := range out {
		list = append(list, v.Interface())
	}
	return list, err
}

// first is the first result of a call.
func first[T any](list []any, err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	x, ok := list[0].(T)
	if !ok && list[0] != nil {
		return none, fmt.Errorf("it answers a %T", list[0])
	}
	return x, nil
}

func fits(t, given reflect.Type) bool { return given.AssignableTo(t) || fitsLoosely(t, given) }

func fitsLoosely(t, given reflect.Type) bool {
	if t.Kind() != reflect.Func || given.Kind() != reflect.Func || given.NumIn() > 0 || given.NumOut() != t.NumOut() {
		return false
	}
	for i := range t.NumOut() {
		if t.Out(i) != given.Out(i) {
			return false
		}
	}
	return true
}

func asType(t reflect.Type, v reflect.Value) reflect.Value {
	if v.Type().AssignableTo(t) {
		return v
	}
	return reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value { return v.Call(nil) })
}

func answeringZeros(t reflect.Type) reflect.Value {
	return reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value {
		out := make([]reflect.Value, t.NumOut())
		for i := range out {
			out[i] = reflect.Zero(t.Out(i))
		}
		return out
	})
}
