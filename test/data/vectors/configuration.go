package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
)

// A map decides which of several gates is told first, or alone; the tests take any order.
func init() {
	suites["config-validation"] = suite{answer: askConfiguration, times: 30, byChance: true}
	if err := logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
	}
}

func askConfiguration(in json.RawMessage) (any, error) {
	configuration, err := decodeConfiguration(in)
	if err != nil {
		return object{"decodeError": err.Error()}, nil
	}
	err = validation.ValidateKubeletConfiguration(configuration, utilfeature.DefaultFeatureGate)
	if err == nil {
		return object{"ok": true}, nil
	}
	all := []error{err}
	if aggregate := utilerrors.Aggregate(nil); errors.As(err, &aggregate) {
		all = utilerrors.Flatten(aggregate).Errors()
	}
	texts := []string{}
	for _, e := range all {
		texts = append(texts, e.Error())
	}
	slices.Sort(texts)
	return object{"errors": texts}, nil
}

// decodeConfiguration decodes strictly. Setting defaults panics where a gate cannot be set.
func decodeConfiguration(in json.RawMessage) (configuration *kubeletconfig.KubeletConfiguration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	_, codecs, err := scheme.NewSchemeAndCodecs(serializer.EnableStrict)
	if err != nil {
		return nil, err
	}
	decoded, _, err := codecs.UniversalDecoder().Decode(in, nil, nil)
	if err != nil {
		return nil, err
	}
	configuration, ok := decoded.(*kubeletconfig.KubeletConfiguration)
	if !ok {
		return nil, fmt.Errorf("it is a %T", decoded)
	}
	return configuration, nil
}
