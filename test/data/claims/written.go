package main

import "fmt"

// written are the cases that each rule has at least one of.
func written() []Case {
	list := []Case{}
	add := func(name string, in Input) { list = append(list, Case{Name: name, In: in}) }
	uses := map[string][]use{"a": {{"gpu", ""}}}
	drivers := map[string][]string{"a.io": v1Only}
	good := claim("gpu", []string{"a.io"}, "p")
	prepare := func(pod Object) Op {
		return Op{Op: "prepare", Pod: text(pod), Answers: map[string]Answer{"a.io": answered("a.io", "gpu")}}
	}
	one := func(name string, c Object, podClaim Object, change func(pod Object)) {
		pod := podOf("p", []Object{podClaim}, uses)
		if change != nil {
			change(pod)
		}
		claims := []Object{}
		if c != nil {
			claims = append(claims, c)
		}
		for _, gate := range []bool{false, true} {
			in := Input{Claims: claims, Drivers: drivers, Ops: []Op{prepare(pod), {Op: "resources", Pod: text(pod), Container: "a"},
				{Op: "unprepare", Pod: text(pod), Answers: map[string]Answer{"a.io": undone("gpu")}}}}
			suffix := ""
			if gate {
				in.Gates, suffix = map[string]bool{"DRAWorkloadResourceClaims": true, "GenericWorkload": true}, "-groups"
			}
			add("refused-"+name+suffix, in)
		}
	}
	template := Object{"name": "gpu", "resourceClaimTemplateName": "t"}
	statuses := func(of ...Object) func(Object) {
		return func(pod Object) {
			l := []any{}
			for _, s := range of {
				l = append(l, s)
			}
			pod["status"] = Object{"resourceClaimStatuses": l}
		}
	}
	owned := func(c Object, kind, api, name, uid string, controller bool) Object {
		c["metadata"].(Object)["ownerReferences"] = []any{Object{"apiVersion": api, "kind": kind, "name": name, "uid": uid, "controller": controller}}
		return c
	}
	fresh := func() Object { return claim("gpu", []string{"a.io"}, "p") }
	group := func(pod Object) {
		statuses(Object{"name": "gpu", "resourceClaimName": "gpu"})(pod)
		pod["spec"].(Object)["schedulingGroup"] = Object{"podGroupName": "g"}
	}
	one("none", good, by("gpu"), nil)
	one("no-source", good, Object{"name": "gpu"}, nil)
	one("not-created", good, template, nil)
	one("not-needed", good, template, statuses(Object{"name": "gpu"}))
	one("other-status", good, template, statuses(Object{"name": "other", "resourceClaimName": "gpu"}))
	one("no-owner", good, template, statuses(Object{"name": "gpu", "resourceClaimName": "gpu"}))
	one("owner", owned(fresh(), "Pod", "v1", "p", "u-p", true), template, statuses(Object{"name": "gpu", "resourceClaimName": "gpu"}))
	one("owner-of-old-pod", owned(fresh(), "Pod", "v1", "p", "u-old", true), template, statuses(Object{"name": "gpu", "resourceClaimName": "gpu"}))
	one("owner-no-controller", owned(fresh(), "Pod", "v1", "p", "u-p", false), template, statuses(Object{"name": "gpu", "resourceClaimName": "gpu"}))
	one("group", owned(fresh(), "PodGroup", "scheduling.k8s.io/v1beta1", "g", "u-g", true), template, group)
	one("group-other", owned(fresh(), "PodGroup", "scheduling.k8s.io/v1beta1", "h", "u-g", true), template, group)
	one("group-api", owned(fresh(), "PodGroup", "scheduling.x-k8s.io/v1", "g", "u-g", true), template, group)
	reserved := func(of ...any) Object {
		c := fresh()
		c["status"].(Object)["reservedFor"] = of
		return c
	}
	one("not-reserved", reserved(), by("gpu"), nil)
	one("reserved-for-old-pod", reserved(Object{"resource": "pods", "name": "p", "uid": "u-old"}), by("gpu"), nil)
	one("reserved-for-two", reserved(Object{"resource": "pods", "name": "o", "uid": "u-o"}, Object{"resource": "pods", "name": "p", "uid": "u-p"}), by("gpu"), nil)
	one("reserved-for-group", reserved(Object{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "u-g"}), by("gpu"), group)
	one("reserved-for-other-group", reserved(Object{"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "h", "uid": "u-g"}), by("gpu"), group)
	one("missing", nil, by("gpu"), nil)
	bare := fresh()
	delete(bare, "status")
	one("no-status", bare, by("gpu"), nil)
	unallocated := fresh()
	delete(unallocated["status"].(Object), "allocation")
	one("not-allocated", unallocated, by("gpu"), nil)
	one("other-driver", claim("gpu", []string{"b.io"}, "p"), by("gpu"), nil)
	one("two-unknown-drivers", claim("gpu", []string{"c.io", "b.io"}, "p"), by("gpu"), nil)
	one("one-unknown-driver", claim("gpu", []string{"a.io", "b.io"}, "p"), by("gpu"), nil)
	one("empty-driver", claim("gpu", []string{""}, "p"), by("gpu"), nil)
	one("no-results", claim("gpu", nil, "p"), by("gpu"), nil)

	// of two claims the first that is wrong is told, and the good one before it changes nothing
	pod := podOf("p", []Object{by("gpu"), by("nic")}, map[string][]use{"a": {{"gpu", ""}, {"nic", ""}}, "b": {{"nic", ""}}})
	add("second-missing", Input{Claims: []Object{good}, Drivers: drivers, Ops: []Op{prepare(pod)}})
	add("second-stale", Input{Claims: []Object{good, claim("nic", []string{"a.io"}, "p")}, Drivers: drivers,
		State: stateOf(entry("nic", "c-old", []string{"o"}, map[string][]Device{"a.io": nil})), Ops: []Op{prepare(pod), {Op: "restart"}}})
	add("first-stale", Input{Claims: []Object{good, claim("nic", []string{"a.io"}, "p")}, Drivers: drivers,
		State: stateOf(entry("gpu", "c-old", []string{"o"}, map[string][]Device{"a.io": nil})), Ops: []Op{prepare(pod)}})

	two := []Object{claim("gpu", []string{"a.io"}, "p"), claim("nic", []string{"a.io", "b.io"}, "p")}
	both := map[string][]string{"a.io": v1Only, "b.io": {"v1.DRAPlugin", "v1beta1.DRAPlugin"}}
	resources := []Op{{Op: "resources", Pod: text(pod), Container: "a"}, {Op: "resources", Pod: text(pod), Container: "b"}}
	after := func(first map[string]Answer, second map[string]Answer) []Op {
		ops := append([]Op{{Op: "prepare", Pod: text(pod), Answers: first}}, resources...)
		ops = append(append(ops, Op{Op: "prepare", Pod: text(pod), Answers: second}), resources...)
		return append(ops, Op{Op: "unprepare", Pod: text(pod), Answers: map[string]Answer{"a.io": undone("gpu", "nic"), "b.io": undone("nic")}}, resources[0])
	}
	fine := map[string]Answer{"a.io": answered("a.io", "gpu", "nic"), "b.io": answered("b.io", "nic")}
	add("batches", Input{Claims: two, Drivers: both, Ops: after(fine, fine)})
	wrong := map[string]Answer{
		"call-fails":    {Fails: "no such file"},
		"claim-fails":   {Claims: map[string]Result{"c-gpu": answered("a.io", "gpu").Claims["c-gpu"], "c-nic": {Error: "no room"}}},
		"first-fails":   {Claims: map[string]Result{"c-gpu": {Error: "no room"}, "c-nic": answered("a.io", "nic").Claims["c-nic"]}},
		"skips-one":     answered("a.io", "gpu"),
		"skips-all":     {},
		"unknown-claim": {Claims: map[string]Result{"c-gpu": {}, "c-nic": {}, "c-zzz": {}}, Unasked: []string{"c-zzz"}},
		"other-claim":   {Claims: map[string]Result{"c-gpu": {}, "c-zzz": {}}, Unasked: []string{"c-zzz"}},
		"error-devices": {Claims: map[string]Result{"c-gpu": {Error: "e", Devices: answered("a.io", "gpu").Claims["c-gpu"].Devices}, "c-nic": {}}},
	}
	for _, name := range []string{"call-fails", "claim-fails", "first-fails", "skips-one", "skips-all", "unknown-claim", "other-claim", "error-devices"} {
		add("driver-"+name, Input{Claims: two, Drivers: both, Ops: after(map[string]Answer{"a.io": wrong[name], "b.io": fine["b.io"]}, fine)})
		add("second-driver-"+name, Input{Claims: []Object{two[0], claim("nic", []string{"b.io"}, "p")}, Drivers: both,
			Ops: after(map[string]Answer{"a.io": answered("a.io", "gpu"), "b.io": wrong[name]}, map[string]Answer{"a.io": answered("a.io", "gpu"), "b.io": answered("b.io", "nic")})})
		undo := Op{Op: "unprepare", Pod: text(pod), Answers: map[string]Answer{"a.io": wrong[name], "b.io": undone("nic")}}
		again := Op{Op: "unprepare", Pod: text(pod), Answers: map[string]Answer{"a.io": undone("gpu", "nic"), "b.io": undone("nic")}}
		other := podOf("q", []Object{by("gpu")}, uses)
		shared := []Object{claim("gpu", []string{"a.io"}, "p", "q"), two[1]}
		add("undo-"+name, Input{Claims: shared, Drivers: both, Ops: []Op{{Op: "prepare", Pod: text(pod), Answers: fine}, undo,
			{Op: "prepare", Pod: text(other), Answers: fine}, {Op: "resources", Pod: text(other), Container: "a"}, again, {Op: "prepare", Pod: text(other), Answers: fine}}})
	}
	list = append(list, sharing(two, both, pod, fine)...)
	list = append(list, requests()...)
	list = append(list, extended()...)
	list = append(list, skipped()...)
	return append(list, healths()...)
}

// sharing: pods with one claim, restarts, drivers that go and come, pods that are gone.
func sharing(two []Object, both map[string][]string, pod Object, fine map[string]Answer) []Case {
	list := []Case{}
	add := func(name string, in Input) { list = append(list, Case{Name: name, In: in}) }
	p, q := podOf("p", []Object{by("gpu")}, map[string][]use{"a": {{"gpu", ""}}}), podOf("q", []Object{by("gpu")}, map[string][]use{"a": {{"gpu", ""}}})
	shared := []Object{claim("gpu", []string{"a.io"}, "p", "q")}
	up := func(pod Object) Op {
		return Op{Op: "prepare", Pod: text(pod), Answers: map[string]Answer{"a.io": answered("a.io", "gpu")}}
	}
	down := func(pod Object) Op {
		return Op{Op: "unprepare", Pod: text(pod), Answers: map[string]Answer{"a.io": undone("gpu")}}
	}
	see := func(pod Object) Op { return Op{Op: "resources", Pod: text(pod), Container: "a"} }
	drivers := map[string][]string{"a.io": v1Only}
	add("shared", Input{Claims: shared, Drivers: drivers, Ops: []Op{up(p), up(q), see(q), down(p), see(p), down(p), down(q), down(q), see(q)}})
	add("not-referenced", Input{Claims: shared, Drivers: drivers, Ops: []Op{up(p), down(q), see(p), down(p)}})
	add("restarted", Input{Claims: shared, Drivers: drivers, Ops: []Op{up(p), {Op: "restart"}, see(p), up(p), see(p), {Op: "restart"}, down(p)}})
	add("new-uid", Input{Claims: shared, Drivers: drivers, Ops: []Op{up(p), {Op: "claims", Claims: []Object{func() Object {
		c := claim("gpu", []string{"a.io"}, "p")
		c["metadata"] = meta("gpu", "c-new")
		return c
	}()}}, up(p), down(p), up(p)}})
	add("driver-gone", Input{Claims: shared, Drivers: drivers, Ops: []Op{up(p), {Op: "deregister", Driver: "a.io"}, up(p), up(q), down(p), down(q), see(p)}})
	add("driver-comes", Input{Claims: shared, Drivers: drivers, Ops: []Op{{Op: "deregister", Driver: "a.io"}, up(p), {Op: "register", Driver: "a.io", Services: v1Only}, up(p), see(p)}})
	for i, services := range [][]string{{}, {"v1.DRAPlugin"}, {"v1beta1.DRAPlugin"}, {"v1beta1.DRAPlugin", "v1.DRAPlugin"}, {"1.0.0"}, {"v1alpha4.Node", "v1beta1.DRAPlugin"}, {"v2.DRAPlugin", "v1.DRAResourceHealth"}, {"v1.DRAPlugin", "v1alpha1.DRAResourceHealth"}} {
		add(fmt.Sprintf("services-%d", i), Input{Claims: shared, Drivers: drivers, Ops: []Op{{Op: "register", Driver: "a.io", Services: services}, {Op: "deregister", Driver: "a.io"}, {Op: "register", Driver: "a.io", Services: services}, up(p), down(p)}})
	}
	add("reconciled", Input{Claims: shared, Drivers: drivers, Ops: []Op{up(p), up(q),
		{Op: "reconcile", Active: []string{"u-p", "u-q"}}, {Op: "reconcile", Active: []string{"u-p"}}, {Op: "reconcile", Active: []string{}, Answers: map[string]Answer{"a.io": {Fails: "busy"}}},
		{Op: "reconcile", Active: []string{}, Answers: map[string]Answer{"a.io": undone("gpu")}}}})
	add("reconciled-restart", Input{Claims: two, Drivers: both, Ops: []Op{{Op: "prepare", Pod: text(pod), Answers: fine}, {Op: "restart"},
		{Op: "reconcile", Active: []string{}, Answers: map[string]Answer{"a.io": undone("gpu", "nic"), "b.io": undone("nic")}}}})
	add("allocation-changed", Input{Claims: shared, Drivers: both, State: stateOf(entry("gpu", "c-gpu", []string{"p"}, map[string][]Device{"a.io": nil, "b.io": nil})), Ops: []Op{up(p), see(p), up(q)}})
	lost := podOf("p", []Object{{"name": "gpu", "resourceClaimTemplateName": "t"}}, map[string][]use{"a": {{"gpu", ""}}})
	told := podOf("p", []Object{{"name": "gpu", "resourceClaimTemplateName": "t"}}, map[string][]use{"a": {{"gpu", ""}}})
	told["status"] = Object{"resourceClaimStatuses": []any{Object{"name": "gpu", "resourceClaimName": "gpu"}}}
	owned := claim("gpu", []string{"a.io"}, "p")
	owned["metadata"].(Object)["ownerReferences"] = []any{Object{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u-p", "controller": true}}
	add("status-lost", Input{Claims: []Object{owned}, Drivers: drivers, Ops: []Op{up(told), see(lost), down(lost), down(told), down(lost)}})
	return list
}

// requests: which devices a container gets by the request that it names.
func requests() []Case {
	list := []Case{}
	devices := func(requests ...[]string) Answer {
		of := []Device{}
		for i, names := range requests {
			of = append(of, Device{Requests: names, Pool: "node-1", Device: fmt.Sprintf("d%d", i), CDI: []string{fmt.Sprintf("a.io/dev=d%d", i), fmt.Sprintf("a.io/aux=d%d", i)}})
		}
		return Answer{Claims: map[string]Result{"c-gpu": {Devices: of}}}
	}
	answers := []Answer{devices([]string{"r0"}), devices([]string{"r0"}, []string{"r1"}), devices(nil, []string{"r1"}), devices([]string{"r0", "r1"}, []string{"r1"}),
		devices([]string{"r0/large"}, []string{"r0"}), devices([]string{}), {Claims: map[string]Result{"c-gpu": {Devices: []Device{{Pool: "node-1", Device: "d"}}}}},
		{Claims: map[string]Result{"c-gpu": {Devices: []Device{{Pool: "node-1", Device: "d", CDI: []string{"a.io/dev=d"}, Share: ref("s-1")}, {Pool: "node-1", Device: "d", CDI: []string{"a.io/dev=d"}, Share: ref("s-2")}}}}}}
	asks := [][]use{{{"gpu", ""}}, {{"gpu", "r0"}}, {{"gpu", "r1"}}, {{"gpu", "r0"}, {"gpu", "r1"}}, {{"gpu", ""}, {"gpu", "r0"}}, {{"gpu", "r0/large"}}, {{"other", ""}}, {}}
	for i, answer := range answers {
		for j, ask := range asks {
			pod := podOf("p", []Object{by("gpu")}, map[string][]use{"a": ask})
			list = append(list, Case{Name: fmt.Sprintf("request-%d-%d", i, j), In: Input{Claims: []Object{claim("gpu", []string{"a.io"}, "p")}, Drivers: map[string][]string{"a.io": {"v1beta1.DRAPlugin", "v1.DRAPlugin"}},
				Ops: []Op{{Op: "prepare", Pod: text(pod), Answers: map[string]Answer{"a.io": answer}}, {Op: "resources", Pod: text(pod), Container: "a"}}}})
		}
	}
	twice := podOf("p", []Object{by("gpu"), {"name": "again", "resourceClaimName": "gpu"}}, map[string][]use{"a": {{"gpu", ""}, {"again", "r0"}}})
	return append(list, Case{Name: "claim-twice", In: Input{Claims: []Object{claim("gpu", []string{"a.io"}, "p")}, Drivers: map[string][]string{"a.io": v1Only},
		Ops: []Op{{Op: "prepare", Pod: text(twice), Answers: map[string]Answer{"a.io": answered("a.io", "gpu")}}, {Op: "resources", Pod: text(twice), Container: "a"}, {Op: "unprepare", Pod: text(twice), Answers: map[string]Answer{"a.io": undone("gpu")}}}}})
}

// extended: resources that a claim of the scheduler backs.
func extended() []Case {
	list := []Case{}
	mapping := func(container, resource, request string) Object {
		return Object{"containerName": container, "resourceName": resource, "requestName": request}
	}
	names := []string{"example.com/gpu", "deviceclass.resource.kubernetes.io/gpu", "gpu", "requests.example.com/gpu", "kubernetes.io/gpu", "example.com/zero"}
	answer := Answer{Claims: map[string]Result{"c-gpu": {Devices: []Device{
		{Requests: []string{"r0"}, Pool: "node-1", Device: "d0", CDI: []string{"a.io/dev=d0"}}, {Requests: []string{"r1"}, Pool: "node-1", Device: "d1", CDI: []string{"a.io/dev=d1"}}}}}}
	for _, gate := range []bool{false, true} {
		for i, name := range names {
			for j, mappings := range [][]any{{}, {mapping("a", name, "r0")}, {mapping("a", name, "r0"), mapping("a", name, "r1")}, {mapping("b", name, "r1")}, {mapping("a", "example.com/other", "r0")}} {
				pod := podOf("p", nil, map[string][]use{"a": {}, "b": {}})
				amount := "1"
				if name == "example.com/zero" {
					amount = "0"
				}
				pod["spec"].(Object)["containers"].([]any)[0].(Object)["resources"] = Object{"requests": Object{name: amount, "cpu": "1"}, "limits": Object{name: amount}}
				pod["status"] = Object{"extendedResourceClaimStatus": Object{"resourceClaimName": "gpu", "requestMappings": mappings}}
				ops := []Op{{Op: "prepare", Pod: text(pod), Answers: map[string]Answer{"a.io": answer}}}
				if i == 1 && j == 0 {
					ops = nil // never prepared
				}
				ops = append(ops, Op{Op: "resources", Pod: text(pod), Container: "a"}, Op{Op: "resources", Pod: text(pod), Container: "b"},
					Op{Op: "unprepare", Pod: text(pod), Answers: map[string]Answer{"a.io": undone("gpu")}})
				list = append(list, Case{Name: fmt.Sprintf("extended-%t-%d-%d", gate, i, j), In: Input{Gates: map[string]bool{"DRAExtendedResource": gate}, Claims: []Object{claim("gpu", []string{"a.io"}, "p")},
					Drivers: map[string][]string{"a.io": v1Only}, Ops: ops}})
			}
		}
	}
	return list
}

// skipped: results whose driver need not be called on the node.
func skipped() []Case {
	list := []Case{}
	sets := [][]string{nil, {"*"}, {"NodePrepareResources"}, {"NodeUnprepareResources"}, {"NodePrepareResources", "NodeUnprepareResources"}, {"*", "NodePrepareResources"}}
	pod := podOf("p", []Object{by("gpu")}, map[string][]use{"a": {{"gpu", ""}}})
	for _, gate := range []bool{false, true} {
		for i, first := range sets {
			for j, second := range sets {
				c := claim("gpu", []string{"a.io", "a.io"}, "p")
				results := c["status"].(Object)["allocation"].(Object)["devices"].(Object)["results"].([]any)
				for k, ops := range [][]string{first, second} {
					if ops != nil {
						results[k].(Object)["skipNodeOperations"] = ops
					}
				}
				in := Input{Claims: []Object{c}, Drivers: map[string][]string{"a.io": v1Only}, Ops: []Op{
					{Op: "prepare", Pod: text(pod), Answers: map[string]Answer{"a.io": answered("a.io", "gpu")}}, {Op: "restart"},
					{Op: "unprepare", Pod: text(pod), Answers: map[string]Answer{"a.io": undone("gpu")}}}}
				if i > j {
					in.Ops = append([]Op{{Op: "deregister", Driver: "a.io"}}, in.Ops...)
				}
				if gate {
					in.Gates = map[string]bool{"DRAOptionalNodeOperations": true, "NodeDeclaredFeatures": true}
				} else if i+j > 3 {
					continue
				}
				list = append(list, Case{Name: fmt.Sprintf("skip-%t-%d-%d", gate, i, j), In: in})
			}
		}
	}
	return list
}

// healths: what a pod's status says of its devices.
func healths() []Case {
	list := []Case{}
	devices := map[string][]Device{"a.io": {{Requests: []string{"r0"}, Pool: "node-1", Device: "d0", CDI: []string{"a.io/dev=d0"}}, {Requests: []string{"r1"}, Pool: "node-1", Device: "d1"}, {Pool: "node-1", Device: "d2", CDI: []string{"a.io/dev=d0"}}}, "b.io": {{Requests: []string{"r0"}, Pool: "p/q", Device: "e"}}}
	at := map[string]map[string]Health{"a.io": {"node-1/d0": {Health: "Unhealthy", Message: "too hot", AgeSeconds: 5}, "node-1/d1": {Health: "Healthy", AgeSeconds: 45}, "node-1/d2": {Health: "Healthy", AgeSeconds: 5}}}
	slow := map[string]map[string]Health{"a.io": {"node-1/d0": {Health: "Unhealthy", Message: "m", AgeSeconds: 15, TimeoutSeconds: 5}, "node-1/d1": {Health: "Healthy", AgeSeconds: 45, TimeoutSeconds: 100}}, "b.io": {"p/q/e": {Health: "Healthy", AgeSeconds: 1}}}
	for i, health := range []map[string]map[string]Health{nil, at, slow} {
		for j, uses := range [][]use{{{"gpu", ""}}, {{"gpu", "r0"}}, {{"gpu", "r1"}, {"gpu", "r0"}}, {{"gpu", "r0/large"}}, {}, {{"other", ""}}} {
			for k, on := range []bool{true, false} {
				refs := []Object{by("gpu")}
				if i == 1 || j == 5 {
					refs = append(refs, Object{"name": "other", "resourceClaimTemplateName": "t"})
				}
				pod := podOf("p", refs, map[string][]use{"a": uses, "b": {}})
				status := Object{"containerStatuses": []any{Object{"name": "a"}, Object{"name": "b"}}}
				if k == 0 {
					status["resourceClaimStatuses"] = []any{Object{"name": "gpu", "resourceClaimName": "gpu"}}
				}
				pod["status"] = status
				in := Input{State: stateOf(entry("gpu", "c-gpu", []string{"p"}, devices)), Health: health, Ops: []Op{{Op: "status", Pod: text(pod)}}}
				in.Gates = map[string]bool{"ResourceHealthStatus": true}
				if !on {
					in.Gates["ResourceHealthStatusMessage"] = false
				}
				list = append(list, Case{Name: fmt.Sprintf("health-%d-%d-%d", i, j, k), In: in})
			}
		}
	}
	return list
}
