// The JSON names of a release's fields, of the types that the newest entry of ../v1-pod-fields.json has: that file in, the entry of
// this release out. Built by `.ci/go-programs k8s.io/kubernetes@v1.X.Y ./test/data/pod-fields`.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"

	v1 "k8s.io/api/core/v1"
)

func main() {
	var entries map[string]map[string][]string
	if err := json.NewDecoder(os.Stdin).Decode(&entries); err != nil {
		panic(err)
	}
	releases := []string{}
	for release := range entries {
		releases = append(releases, release)
	}
	sort.Strings(releases)
	all := map[string]reflect.Type{}
	walk(reflect.TypeFor[v1.Pod](), all)
	lines := []string{}
	for name := range entries[releases[len(releases)-1]] {
		names, _ := json.Marshal(fields(all[name]))
		lines = append(lines, fmt.Sprintf("  %q: %s", name, strings.ReplaceAll(string(names), ",", ", ")))
	}
	sort.Strings(lines)
	fmt.Println(strings.Join(lines, ",\n"))
}

func walk(t reflect.Type, into map[string]reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		walk(t.Elem(), into)
	case reflect.Struct:
		if into[t.Name()] != nil {
			return
		}
		into[t.Name()] = t
		for i := range t.NumField() {
			walk(t.Field(i).Type, into)
		}
	}
}

func fields(t reflect.Type) []string {
	names := []string{}
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name != "":
			names = append(names, name)
		case field.Anonymous:
			names = append(names, fields(field.Type)...)
		}
	}
	return names
}
