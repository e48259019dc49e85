package main

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math/rand"
	"strings"
)

var r *rand.Rand

func chance(p float64) bool            { return r.Float64() < p }
func pick[T any](list ...T) T          { return list[r.Intn(len(list))] }
func text(v any) json.RawMessage       { t, err := json.Marshal(v); must(err); return t }
func ref[T any](v T) *T                { return &v }
func cdi(driver, device string) string { return driver + "/dev=" + device }

// cases are the written ones, and as many by chance.
func cases(seed int64, count int) []Case {
	r = rand.New(rand.NewSource(seed))
	list := append(stateFiles(), written()...)
	for i := 0; i < count; i++ {
		list = append(list, Case{Name: fmt.Sprintf("chance-%d", i), In: byChance()})
	}
	return list
}

func meta(name, uid string) Object { return Object{"namespace": "ns", "name": name, "uid": uid} }

// claim is allocated with one device of each driver, and reserved for pods.
func claim(name string, drivers []string, pods ...string) Object {
	results := []any{}
	for i, d := range drivers {
		results = append(results, Object{"request": fmt.Sprintf("r%d", i), "driver": d, "pool": "node-1", "device": fmt.Sprintf("%s-%d", name, i)})
	}
	reserved := []any{}
	for _, p := range pods {
		reserved = append(reserved, Object{"resource": "pods", "name": p, "uid": "u-" + p})
	}
	return Object{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta(name, "c-"+name), "spec": Object{},
		"status": Object{"allocation": Object{"devices": Object{"results": results}}, "reservedFor": reserved}}
}

type use struct{ claim, request string }

func podOf(name string, claims []Object, containers map[string][]use) Object {
	list := []any{}
	for _, c := range []string{"a", "b"} {
		uses, ok := containers[c]
		if !ok {
			continue
		}
		of := []any{}
		for _, u := range uses {
			one := Object{"name": u.claim}
			if u.request != "" {
				one["request"] = u.request
			}
			of = append(of, one)
		}
		list = append(list, Object{"name": c, "resources": Object{"claims": of}})
	}
	refs := []any{}
	for _, c := range claims {
		refs = append(refs, c)
	}
	return Object{"metadata": meta(name, "u-"+name), "spec": Object{"resourceClaims": refs, "containers": list}}
}
func by(name string) Object { return Object{"name": name, "resourceClaimName": name} }

// answered says that a driver prepared claims, a device each with the request r0.
func answered(driver string, claims ...string) Answer {
	all := map[string]Result{}
	for _, c := range claims {
		all["c-"+c] = Result{Devices: []Device{{Requests: []string{"r0"}, Pool: "node-1", Device: c, CDI: []string{cdi(driver, c)}}}}
	}
	return Answer{Claims: all}
}
func undone(claims ...string) Answer {
	all := map[string]Result{}
	for _, c := range claims {
		all["c-"+c] = Result{}
	}
	return Answer{Claims: all}
}

var v1Only = []string{"v1.DRAPlugin"}

func stateFile(data string) string {
	return fmt.Sprintf(`{"Data":%s,"Checksum":%d}`, text(data), crc32.ChecksumIEEE([]byte(data)))
}
func entry(claim, uid string, pods []string, drivers map[string][]Device) string {
	set := Object{}
	for _, p := range pods {
		set["u-"+p] = Object{}
	}
	states := Object{}
	for d, devices := range drivers {
		list := []any{}
		for _, one := range devices {
			list = append(list, Object{"PoolName": one.Pool, "DeviceName": one.Device, "RequestNames": one.Requests, "CDIDeviceIDs": one.CDI})
		}
		states[d] = Object{"Devices": list}
	}
	return string(text(Object{"ClaimUID": uid, "ClaimName": claim, "Namespace": "ns", "PodUIDs": set, "DriverState": states}))
}
func stateOf(entries ...string) *string {
	return ref(stateFile(`{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":[` + strings.Join(entries, ",") + `]}`))
}

// stateFiles are texts of dra_manager_state, good and bad, each read by a kubelet that then writes it anew.
func stateFiles() []Case {
	good := entry("gpu", "c-gpu", []string{"p"}, map[string][]Device{"a.io": {{Requests: []string{"r0"}, Pool: "node-1", Device: "d", CDI: []string{"a.io/dev=d"}}}})
	head := `{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v1","ClaimInfoStateList":`
	texts := []string{
		*stateOf(), *stateOf(good), stateFile(head + "null}"), stateFile("{}"), stateFile("null"), stateFile("[]"), stateFile(""), stateFile("{"),
		"", " ", "{}", "null", "[]", "1", `"x"`, "{", `{"Data":"{}"}`, `{"Data":"{}","Checksum":1}`, `{"Data":"{}","Checksum":-1}`,
		`{"Data":"{}","Checksum":4294967296}`, `{"Data":"{}","Checksum":"1"}`, `{"Data":{},"Checksum":1}`, `{"Data":1,"Checksum":1}`, `{"Checksum":0}`,
		`{"data":"{}","checksum":` + fmt.Sprint(crc32.ChecksumIEEE([]byte("{}"))) + `}`,
		`{"Data":"{}","Checksum":` + fmt.Sprint(crc32.ChecksumIEEE([]byte("{}"))) + `}x`,
		stateFile(head + `[` + strings.Replace(good, `"c-gpu"`, `7`, 1) + `]}`),
		stateFile(head + `[` + strings.Replace(good, `{"u-p":{}}`, `["u-p"]`, 1) + `]}`),
		stateFile(head + `[` + strings.Replace(good, `["r0"]`, `"r0"`, 1) + `]}`),
		stateFile(head + `[` + strings.Replace(good, `["r0"]`, `[1]`, 1) + `]}`),
		stateFile(head + `[` + strings.Replace(good, `"DeviceName":"d"`, `"DeviceName":{}`, 1) + `]}`),
		stateFile(head + `[` + strings.Replace(good, `"DeviceName":"d"`, `"DeviceName":"d","ShareID":"s-1"`, 1) + `]}`),
		stateFile(head + `[` + strings.Replace(good, `"DeviceName":"d"`, `"DeviceName":"d","ShareID":1`, 1) + `]}`),
		stateFile(head + `[` + strings.Replace(good, `"DeviceName":"d"`, `"devicename":"e"`, 1) + `]}`),
		stateFile(head + `[` + strings.Replace(good, `"Devices":[`, `"skipNodeOperations":["*"],"Devices":[`, 1) + `]}`),
		stateFile(head + `[` + strings.Replace(good, `"DriverState":{`, `"DriverState":{"b.io":{"Devices":null},`, 1) + `]}`),
		stateFile(head + `{}}`), stateFile(head + `[1]}`),
		stateFile(`{"kind":"DRACheckpoint","apiVersion":"checkpoint.dra.kubelet.k8s.io/v2","ClaimInfoStateList":[]}`),
		stateFile(`{"kind":1,"ClaimInfoStateList":[]}`),
		stateFile(head + `[` + good + `,` + strings.Replace(good, `"c-gpu"`, `"c-other"`, 1) + `]}`),
		// of a kubelet before 1.31
		`{"version":"v1","entries":[{"DriverName":"a.io","ClassName":"c","ClaimUID":"c-gpu","ClaimName":"gpu","Namespace":"ns","PodUIDs":{"u-p":{}},"CDIDevices":{"a.io":["a.io/dev=d"]}}],"checksum":1656016162}`,
		strings.Replace(*stateOf(good), `u-p`, `u-q`, 1), (*stateOf(good))[:40],
	}
	list := []Case{}
	drivers := map[string][]string{"a.io": v1Only}
	p := podOf("p", []Object{by("gpu")}, map[string][]use{"a": {{"gpu", ""}}})
	for i, t := range texts {
		ops := []Op{{Op: "resources", Pod: text(p), Container: "a"}, {Op: "unprepare", Pod: text(p), Answers: map[string]Answer{"a.io": undone("gpu")}}}
		list = append(list, Case{Name: fmt.Sprintf("state-%d", i), In: Input{Drivers: drivers, State: ref(t), Ops: ops}})
	}
	return list
}
