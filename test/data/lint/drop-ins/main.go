// Answers of the kubelet's own functions to the files and folders of drop-ins of kubelet-1.37.2.json. Built in a module that
// requires k8s.io/kubernetes v1.37.2 with its staging modules replaced by their v0.37.2, beside an empty file empty.s, as functions of
// another package are called; [{name, config, dropIns}] in, the same with the answers out.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	_ "unsafe"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	_ "k8s.io/component-base/logs/json/register" // as the kubelet's own main does
	external "k8s.io/kubelet/config/v1beta1"
	_ "k8s.io/kubernetes/cmd/kubelet/app"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
)

//go:linkname loadConfigFile k8s.io/kubernetes/cmd/kubelet/app.loadConfigFile
func loadConfigFile(ctx context.Context, name string) (*kubeletconfig.KubeletConfiguration, error)

//go:linkname mergeKubeletConfigurations k8s.io/kubernetes/cmd/kubelet/app.mergeKubeletConfigurations
func mergeKubeletConfigurations(kc *kubeletconfig.KubeletConfiguration, dir string) ([]string, error)

type Answer struct {
	Name    string            `json:"name"`
	Config  json.RawMessage   `json:"config"`
	DropIns map[string]string `json:"dropIns"`
	Load    string            `json:"load,omitempty"`
	Errors  []string          `json:"errors,omitempty"`
	// what is otherwise than without any field
	Changed map[string]any `json:"changed,omitempty"`
}

func main() {
	var cases []Answer
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	plain := asked(Answer{Config: json.RawMessage(`{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration"}`)}, nil)
	for i, c := range cases {
		cases[i] = asked(c, plain.Changed)
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	_ = enc.Encode(cases)
}

func asked(c Answer, plain map[string]any) Answer {
	dir, _ := os.MkdirTemp("", "drop-ins")
	defer os.RemoveAll(dir)
	file, folder := filepath.Join(dir, "kubelet.yaml"), filepath.Join(dir, "kubelet.conf.d")
	write(file, string(c.Config))
	_ = os.MkdirAll(folder, 0o755)
	for name, text := range c.DropIns {
		write(filepath.Join(folder, name), text)
	}
	a := Answer{Name: c.Name, Config: c.Config, DropIns: c.DropIns, Errors: []string{}}
	kc, err := merged(file, folder)
	if err != nil {
		a.Load = strings.ReplaceAll(err.Error(), dir, "")
		return a
	}
	// the machine of the test has nothing to do with it
	kc.FailCgroupV1 = false
	if err := validation.ValidateKubeletConfiguration(kc, utilfeature.DefaultFeatureGate); err != nil {
		for _, e := range utilerrors.Flatten(err.(utilerrors.Aggregate)).Errors() {
			a.Errors = append(a.Errors, e.Error())
		}
		sort.Strings(a.Errors)
	}
	a.Changed = changed(kc, plain, dir)
	return a
}

func write(path, text string) {
	_ = os.MkdirAll(filepath.Dir(path), 0o755)
	_ = os.WriteFile(path, []byte(text), 0o644)
}

func merged(file, folder string) (kc *kubeletconfig.KubeletConfiguration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	if kc, err = loadConfigFile(context.Background(), file); err == nil {
		_, err = mergeKubeletConfigurations(kc, folder)
	}
	return kc, err
}

func changed(kc *kubeletconfig.KubeletConfiguration, plain map[string]any, dir string) map[string]any {
	versioned := &external.KubeletConfiguration{}
	_ = v1beta1.Convert_config_KubeletConfiguration_To_v1beta1_KubeletConfiguration(kc, versioned, nil)
	text, _ := json.Marshal(versioned)
	all := map[string]any{}
	_ = json.Unmarshal([]byte(strings.ReplaceAll(string(text), dir, "")), &all)
	found := map[string]any{}
	for name, value := range all {
		if !reflect.DeepEqual(value, plain[name]) {
			found[name] = value
		}
	}
	for name := range plain {
		if _, there := all[name]; !there {
			found[name] = nil
		}
	}
	return found
}
