package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/util/dump"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/version"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/checkpoint"
)

func init() {
	suites["device-checkpoint"] = suite{answer: asking(askDeviceCheckpoint)}
	suites["starts"] = suite{answer: askStart, whole: true, atOnce: 1, times: 2}
}

//go:linkname typesByString reflect.typesByString
func typesByString(s string) []unsafe.Pointer

var formVersion = regexp.MustCompile(`Checkpoint(V\d+)`)

func sumOf(text string) uint64 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return uint64(h.Sum32())
}

// fileAndHashed gives a state file, and the text that its checksum is of: a dump of its form under the name that the form had at first.
func fileAndHashed(path, form string) (any, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var sum struct{ Checksum uint64 }
	if err := json.Unmarshal(file, &sum); err != nil {
		return nil, err
	}
	for _, t := range formsOf(form) {
		v := reflect.New(t)
		if json.Unmarshal(file, v.Interface()) != nil {
			continue
		}
		v.Elem().FieldByName("Checksum").SetUint(0)
		for range 2 {
			text := formVersion.ReplaceAllString(dump.ForHash(v.Interface()), "Checkpoint")
			if sumOf(text) == sum.Checksum {
				return object{"file": string(file), "hashed": text}, nil
			}
			// no entries are read as none, and were written as an empty map
			if entries := v.Elem().FieldByName("Entries"); entries.Len() == 0 {
				entries.Set(reflect.MakeMap(entries.Type()))
			}
		}
	}
	return nil, fmt.Errorf("no form of %s has the checksum %d of %s", form, sum.Checksum, file)
}

// formsOf finds the types of a checkpoint's forms, of which a version has some.
func formsOf(name string) (types []reflect.Type) {
	for _, suffix := range []string{"", "V1", "V2", "V3", "V4", "V5", "V6"} {
		for _, t := range typesByString("*" + name + suffix) {
			var x any
			(*[2]unsafe.Pointer)(unsafe.Pointer(&x))[0] = t
			types = append(types, reflect.TypeOf(x).Elem())
		}
	}
	return types
}

type deviceCheckpointIn struct {
	Entries []struct {
		PodUID, Container, Resource string
		DevicesPerNUMA              checkpoint.DevicesPerNUMA
		AllocateResponse            []byte
	}
	Registered map[string][]string
}

func askDeviceCheckpoint(in deviceCheckpointIn) (any, error) {
	var entries []checkpoint.PodDevicesEntry
	for _, e := range in.Entries {
		entries = append(entries, checkpoint.PodDevicesEntry{
			PodUID: e.PodUID, ContainerName: e.Container, ResourceName: e.Resource, DeviceIDs: e.DevicesPerNUMA, AllocResp: e.AllocateResponse,
		})
	}
	made := checkpoint.New(entries, in.Registered)
	file, err := made.MarshalCheckpoint()
	if err != nil {
		return nil, err
	}
	data := made.(*checkpoint.Data)
	text := dump.ForHash(data.Data)
	if sumOf(text) != uint64(data.Checksum) {
		return nil, fmt.Errorf("its checksum %d is not that of %s", data.Checksum, text)
	}
	return object{"file": string(file), "hashed": text}, nil
}

// start is a manager's start with a state file, or without.
type start struct {
	Manager, Policy string
	Gates           []string
	Text            *string
	Answers         json.RawMessage
}

// askStart sets the answer of this release. A version that lacks a gate of the case has none.
func askStart(text json.RawMessage) (any, error) {
	var s start
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	answers := &line{}
	if s.Answers != nil {
		var err error
		if answers, err = readLine(s.Answers); err != nil {
			return nil, err
		}
	}
	gates := map[string]bool{"PodLevelResourceManagers": false, "InPlacePodVerticalScalingExclusiveCPUs": false}
	for name := range gates {
		if !knows(name) {
			delete(gates, name)
		}
	}
	for _, name := range s.Gates {
		if !knows(name) {
			return answers, nil
		}
		gates[name] = true
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return nil, err
	}
	answer, err := inFolder(s.answer)
	if err != nil {
		return nil, err
	}
	own, err := textOf(answer)
	answers.set(strings.TrimPrefix(version.Get().GitVersion, "v"), own)
	return answers, err
}

func (s start) answer(dir string) (any, error) {
	path := filepath.Join(dir, map[string]string{"cpu": "cpu_manager_state", "memory": "memory_manager_state"}[s.Manager])
	if s.Text != nil {
		if err := os.WriteFile(path, []byte(*s.Text), 0o600); err != nil {
			return nil, err
		}
	}
	refused := func(err error) (any, error) {
		return object{"error": strings.ReplaceAll(err.Error(), dir, "/var/lib/kubelet")}, nil
	}
	switch s.Manager {
	case "cpu":
		containers := containermap.NewContainerMap()
		containers.Add("uid-1", "c0", "id1")
		containers.Add("uid-1", "c1", "id2")
		state, err := cpuStateIn(dir, s.Policy, containers)
		if err != nil {
			return refused(err)
		}
		// a change, even to what is there, writes the file
		if _, err := call(state.SetDefaultCPUSet, state.GetDefaultCPUSet()); err != nil {
			return nil, err
		}
		file, err := os.ReadFile(path)
		return object{"file": string(file)}, err
	case "memory":
		state, err := memoryStateIn(dir, s.Policy)
		if err != nil {
			return refused(err)
		}
		return object{"entries": state.GetMemoryAssignments()}, nil
	}
	return nil, fmt.Errorf("there is no manager %q", s.Manager)
}
