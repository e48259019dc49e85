// Answers of the kubelet's own flag set: its flags, and what it makes of the command lines of cases.json. Built in a module that requires
// k8s.io/kubernetes v1.37.2 with its staging modules replaced by their v0.37.2; [[argument...]...] in, {flags, answers} out. The
// files of other versions were made in the same way of that version. kubelet 1.37: NewKubeletCommand, kubeletConfigFlagPrecedence.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"
	v1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	_ "k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	conv "k8s.io/kubernetes/pkg/kubelet/apis/config/v1beta1"
)

type said struct{ lines []string }

func (s *said) Write(p []byte) (int, error) {
	s.lines = append(s.lines, strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

func flagSet() (*pflag.FlagSet, *kubeletconfig.KubeletConfiguration, *options.KubeletFlags, *said) {
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	out := &said{}
	fs.SetOutput(out)
	flags := options.NewKubeletFlags()
	config, err := options.NewKubeletConfiguration()
	if err != nil {
		panic(err)
	}
	flags.AddFlags(fs)
	options.AddKubeletConfigFlags(fs, config)
	options.AddGlobalFlags(fs)
	fs.BoolP("help", "h", false, "help")
	return fs, config, flags, out
}

func flat(value any, path string, out map[string]string) {
	if members, ok := value.(map[string]any); ok && len(members) > 0 {
		for name, inner := range members {
			at := name
			if path != "" {
				at = path + "." + name
			}
			flat(inner, at, out)
		}
		return
	}
	text, _ := json.Marshal(value)
	out[path] = string(text)
}

// the document's fields by their paths, as JSON
func fieldsOf(config *kubeletconfig.KubeletConfiguration) map[string]string {
	versioned := &v1beta1.KubeletConfiguration{}
	if err := conv.Convert_config_KubeletConfiguration_To_v1beta1_KubeletConfiguration(config, versioned, nil); err != nil {
		panic(err)
	}
	text, err := json.Marshal(versioned)
	if err != nil {
		panic(err)
	}
	var document any
	if err := json.Unmarshal(text, &document); err != nil {
		panic(err)
	}
	found := map[string]string{}
	flat(document, "", found)
	return found
}

func changed(before, after map[string]string) map[string]json.RawMessage {
	found := map[string]json.RawMessage{}
	for path, text := range after {
		if before[path] != text {
			found[path] = json.RawMessage(text)
		}
	}
	return found
}

// values of which one at least is another one than any default
var tries = []string{"7", "7s", "x", "true", "false", "a=1", "A=true", "a<1", "0:memory=1Gi", "a=b:NoSchedule", "text", "json", "10.0.0.7", "VersionTLS12", "AlwaysAllow", "1.5", "a:b"}

func fieldOf(name string) string {
	paths := map[string]bool{}
	for _, text := range tries {
		fs, config, _, _ := flagSet()
		before := fieldsOf(config)
		if name == "help" || name == "version" || fs.Parse([]string{"--" + name + "=" + text}) != nil {
			continue
		}
		for path := range changed(before, fieldsOf(config)) {
			paths[path] = true
		}
	}
	var all []string
	for path := range paths {
		all = append(all, path)
	}
	sort.Strings(all)
	return strings.Join(all, " ")
}

func main() {
	if err := logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	var cases [][]string
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		panic(err)
	}
	flags := map[string][]string{}
	all, _, _, _ := flagSet()
	all.VisitAll(func(f *pflag.Flag) { flags[f.Name] = []string{fieldOf(f.Name), f.Deprecated} })
	answers := []map[string]any{}
	for _, args := range cases {
		fs, config, kubeletFlags, out := flagSet()
		before := fieldsOf(config)
		answer := map[string]any{"args": args}
		if err := fs.Parse(args); err != nil {
			answer["error"] = fmt.Sprintf("failed to parse kubelet flag: %v", err)
		} else if rest := fs.Args(); len(rest) > 0 {
			answer["error"] = fmt.Sprintf("unknown command %+s", rest[0])
		} else if err := options.ValidateKubeletFlags(kubeletFlags); err != nil {
			answer["error"] = fmt.Sprintf("failed to validate kubelet flags: %v", err)
		} else {
			answer["set"] = changed(before, fieldsOf(config))
		}
		if len(out.lines) > 0 {
			answer["said"] = out.lines
		}
		answers = append(answers, answer)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]any{"flags": flags, "answers": answers}); err != nil {
		panic(err)
	}
}
