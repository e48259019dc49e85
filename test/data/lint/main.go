// Answers of the kubelet's own functions to the configurations of kubelet-1.36.3.json: what they say is what the lint has to
// say. Built in a module that requires k8s.io/kubernetes v1.36.3 with its staging modules replaced by their v0.36.3, and with
// -ldflags "-X k8s.io/component-base/version.gitVersion=v1.36.3", as a released kubelet is; [{name, configuration}] in, the same
// with the answers out. The files of other versions hold those that differ, asked in the same way of that version: 1.34 and 1.35
// have no TLSCurvePreferences, and NewPolicyOptions of 1.34 takes no logger.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	_ "k8s.io/component-base/logs/json/register" // as the kubelet's own main does
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/util/codec"
	"k8s.io/kubernetes/pkg/kubelet/logs"
	"k8s.io/kubernetes/pkg/kubelet/sysctl"
)

type Case struct {
	Name          string          `json:"name"`
	Configuration json.RawMessage `json:"configuration"`
}
type Answer struct {
	Name          string          `json:"name"`
	Configuration json.RawMessage `json:"configuration"`
	// why the file cannot be loaded at all
	Load *string `json:"load"`
	// what strict decoding says, and the kubelet only logs
	Strict []string `json:"strict"`
	// ValidateKubeletConfiguration
	Errors []string `json:"errors"`
	// ParseThresholdConfig, ParseQOSReserved, ParseQuantity of containerLogMaxSize, InitializeTLS, BuildAuthz, NewAllowlist
	Later []string `json:"later"`
}

func main() {
	var cases []Case
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	answers := []Answer{}
	for _, c := range cases {
		answers = append(answers, answer(c))
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	_ = enc.Encode(answers)
}

func answer(c Case) (a Answer) {
	a = Answer{Name: c.Name, Configuration: c.Configuration, Errors: []string{}, Strict: []string{}, Later: []string{}}
	defer func() {
		if r := recover(); r != nil {
			s := fmt.Sprintf("panic: %v", r)
			a.Load = &s
		}
	}()
	var m map[string]any
	if err := json.Unmarshal(c.Configuration, &m); err != nil {
		panic(err)
	}
	// one that has any of both is asked about as it is
	_, hasVersion := m["apiVersion"]
	_, hasKind := m["kind"]
	if !hasVersion && !hasKind {
		m["apiVersion"] = "kubelet.config.k8s.io/v1beta1"
		m["kind"] = "KubeletConfiguration"
	}
	data, _ := json.Marshal(m)
	_, codecs, err := scheme.NewSchemeAndCodecs(serializer.EnableStrict)
	if err != nil {
		panic(err)
	}
	if _, _, err := codecs.UniversalDecoder().Decode(data, nil, nil); err != nil {
		a.Strict = append(a.Strict, released(err))
	}
	kc, err := codec.DecodeKubeletConfiguration(context.Background(), codecs, data)
	if err != nil {
		s := released(err)
		a.Load = &s
		return a
	}
	if kc.EvictionHard == nil {
		kc.EvictionHard = eviction.DefaultEvictionHard
	} else if kc.MergeDefaultEvictionSettings {
		for k, v := range eviction.DefaultEvictionHard {
			if _, exists := kc.EvictionHard[k]; !exists {
				kc.EvictionHard[k] = v
			}
		}
	}
	// the machine of the test has nothing to do with it
	kc.FailCgroupV1 = false
	if err := validation.ValidateKubeletConfiguration(kc, utilfeature.DefaultFeatureGate); err != nil {
		if agg, ok := err.(utilerrors.Aggregate); ok {
			for _, e := range agg.Errors() {
				a.Errors = append(a.Errors, e.Error())
			}
		} else {
			a.Errors = append(a.Errors, err.Error())
		}
	}
	g := utilfeature.DefaultMutableFeatureGate
	for name, on := range kc.FeatureGates {
		// those that are read there
		if strings.HasPrefix(name, "CPUManagerPolicy") {
			if err := g.SetFromMap(map[string]bool{name: on}); err != nil {
				panic(err)
			}
		}
	}
	a.Later = append(a.Later, later(kc)...)
	a.Later = append(a.Later, eachAlone(kc)...)
	for name := range kc.FeatureGates {
		_ = g.(featuregate.MutableVersionedFeatureGate).ResetFeatureValueToDefault(featuregate.Feature(name))
	}
	return a
}

// A scheme is named after the first file of the stack that is not apimachinery's own scheme.go, which is not told by its name
// where modules have versions in theirs. Released kubelets are built without: there it is the line of NewSchemeAndCodecs.
func released(err error) string {
	return ownScheme.ReplaceAllString(err.Error(), "pkg/kubelet/apis/config/scheme/scheme.go:33")
}

var ownScheme = regexp.MustCompile(`pkg/runtime/scheme\.go:\d+`)

func later(kc *kubeletconfig.KubeletConfiguration) (l []string) {
	if _, err := eviction.ParseThresholdConfig(kc.EnforceNodeAllocatable, kc.EvictionHard, kc.EvictionSoft, kc.EvictionSoftGracePeriod, kc.EvictionMinimumReclaim); err != nil {
		l = append(l, err.Error())
	}
	if _, err := cm.ParseQOSReserved(kc.QOSReserved); err != nil {
		l = append(l, fmt.Errorf("--qos-reserved value failed to parse: %w", err).Error())
	}
	if kc.ReservedSystemCPUs != "" {
		// as run does
		delete(kc.KubeReserved, "cpu")
		delete(kc.SystemReserved, "cpu")
	}
	for _, of := range []struct {
		name string
		list map[string]string
	}{{"--kube-reserved", kc.KubeReserved}, {"--system-reserved", kc.SystemReserved}} {
		names := []string{}
		for k := range of.list {
			names = append(names, k)
		}
		sort.Strings(names)
		for _, k := range names {
			if _, err := resource.ParseQuantity(of.list[k]); err != nil {
				l = append(l, fmt.Errorf("%s value failed to parse: %w", of.name, fmt.Errorf("failed to parse quantity %q for %q resource: %w", of.list[k], k, err)).Error())
			}
		}
	}
	if _, err := logs.NewContainerLogManager(nil, nil, kc.ContainerLogMaxSize, 5, 1, metav1.Duration{}); err != nil {
		// as NewMainKubelet wraps it
		l = append(l, fmt.Errorf("failed to initialize container log manager: %v", err).Error())
	}
	if _, err := topologymanager.NewPolicyOptions(klog.Background(), kc.TopologyManagerPolicyOptions); err != nil && kc.TopologyManagerPolicy != "none" {
		l = append(l, err.Error())
	}
	if kc.CPUManagerPolicy == "none" {
		if _, err := cpumanager.NewNonePolicy(kc.CPUManagerPolicyOptions); err != nil {
			// as NewManager wraps it
			l = append(l, fmt.Errorf("new none policy error: %w", err).Error())
		}
	} else if _, err := cpumanager.NewStaticPolicyOptions(kc.CPUManagerPolicyOptions); err != nil && kc.CPUManagerPolicy == "static" {
		l = append(l, fmt.Errorf("new static policy error: %w", err).Error())
	}
	return l
}

// What stops at the first is asked about each on its own.
func eachAlone(kc *kubeletconfig.KubeletConfiguration) (l []string) {
	tls := func(one kubeletconfig.KubeletConfiguration) {
		// no certificate is written then
		one.ServerTLSBootstrap = true
		if _, err := app.InitializeTLS(context.Background(), options.NewKubeletFlags(), &one); err != nil {
			l = append(l, err.Error())
		}
	}
	for _, name := range kc.TLSCipherSuites {
		tls(kubeletconfig.KubeletConfiguration{TLSCipherSuites: []string{name}})
	}
	tls(kubeletconfig.KubeletConfiguration{TLSMinVersion: kc.TLSMinVersion})
	tls(kubeletconfig.KubeletConfiguration{TLSCurvePreferences: kc.TLSCurvePreferences})
	for _, pattern := range kc.AllowedUnsafeSysctls {
		if _, err := sysctl.NewAllowlist([]string{pattern}); err != nil {
			l = append(l, err.Error())
		}
	}
	// a webhook wants the API server, which the test has not
	if kc.Authorization.Mode != kubeletconfig.KubeletAuthorizationModeWebhook {
		if _, err := app.BuildAuthz(nil, kc.Authorization); err != nil {
			l = append(l, err.Error())
		}
	}
	return l
}
