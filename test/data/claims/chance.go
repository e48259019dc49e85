package main

import "fmt"

// byChance is a course of a node with two pods, up to three claims and up to three drivers, in which things go wrong.
func byChance() Input {
	names := []string{"gpu", "nic", "tpu"}[:1+r.Intn(3)]
	known := []string{"a.io", "b.io", "c.io"}[:1+r.Intn(3)]
	in := Input{Drivers: map[string][]string{}}
	for _, d := range known {
		if chance(0.95) {
			in.Drivers[d] = pick([]string{"v1.DRAPlugin"}, []string{"v1beta1.DRAPlugin"}, []string{"v1.DRAPlugin", "v1beta1.DRAPlugin"})
		}
	}
	if chance(0.3) {
		in.Gates = map[string]bool{"DRAExtendedResource": true}
	}
	claims := func(odd float64) []Object {
		list := []Object{}
		for _, n := range names {
			c := claim(n, known[:1+r.Intn(len(known))], "p", "q")
			status := c["status"].(Object)
			switch {
			case chance(odd):
				delete(status, "allocation")
			case chance(odd):
				status["reservedFor"] = []any{Object{"resource": "pods", "name": "q", "uid": "u-q"}}
			case chance(odd):
				c["metadata"] = meta(n, "c-new-"+n)
			case chance(odd):
				continue
			}
			list = append(list, c)
		}
		return list
	}
	in.Claims = claims(0.04)
	if chance(0.3) {
		entries := []string{}
		for _, n := range names {
			if chance(0.6) {
				entries = append(entries, entry(n, pick("c-"+n, "c-"+n, "c-"+n, "c-old"), []string{pick("p", "q", "gone")}, map[string][]Device{
					"a.io": {{Requests: []string{"r0"}, Pool: "node-1", Device: n, CDI: []string{cdi("a.io", n)}}}}))
			}
		}
		in.State = stateOf(entries...)
	}
	pods := []Object{}
	for _, p := range []string{"p", "q"} {
		refs, all := []Object{}, []use{}
		for _, n := range names {
			if chance(0.8) {
				refs = append(refs, by(n))
				all = append(all, use{n, pick("", "", "r0", "r1")})
			}
		}
		pod := podOf(p, refs, map[string][]use{"a": all, "b": all[:len(all)/2]})
		if chance(0.3) {
			pod["status"] = Object{"extendedResourceClaimStatus": Object{"resourceClaimName": names[0], "requestMappings": []any{
				Object{"containerName": "a", "resourceName": "example.com/x", "requestName": "r0"}, Object{"containerName": "a", "resourceName": "example.com/x", "requestName": "r1"}}}}
			a := pod["spec"].(Object)["containers"].([]any)[0].(Object)["resources"].(Object)
			a["requests"] = Object{"example.com/x": "2"}
		}
		pods = append(pods, pod)
	}
	for i, n := 0, 3+r.Intn(6); i < n; i++ {
		pod := pods[r.Intn(2)]
		switch k := r.Intn(20); {
		case k < 9:
			in.Ops = append(in.Ops, Op{Op: "prepare", Pod: text(pod), Answers: answersByChance(names, known, true, true)},
				Op{Op: "resources", Pod: text(pod), Container: "a"}, Op{Op: "resources", Pod: text(pod), Container: "b"})
		case k < 15:
			in.Ops = append(in.Ops, Op{Op: "unprepare", Pod: text(pod), Answers: answersByChance(names, known, false, true)})
		case k == 15:
			in.Ops = append(in.Ops, Op{Op: "restart"})
		case k == 16:
			in.Ops = append(in.Ops, Op{Op: "claims", Claims: claims(0.1)})
		case k == 17:
			in.Ops = append(in.Ops, Op{Op: "deregister", Driver: pick(known...)})
		default:
			in.Ops = append(in.Ops, Op{Op: "reconcile", Active: pick([]string{"u-p", "u-q"}, []string{"u-p", "u-gone"}, []string{"u-q", "u-gone"}), Answers: answersByChance(names, known, false, false)})
		}
	}
	return in
}

// answersByChance fail with one driver at most, and of that for one claim, since Go's maps would choose among more.
func answersByChance(names, known []string, devices, faults bool) map[string]Answer {
	all := map[string]Answer{}
	for _, d := range known {
		a := Answer{Claims: map[string]Result{}}
		for _, n := range names {
			result := Result{}
			for j := 0; devices && j < r.Intn(3); j++ {
				id := fmt.Sprintf("%s-%d", n, j)
				result.Devices = append(result.Devices, Device{Requests: pick([]string{"r0"}, []string{"r1"}, nil), Pool: "node-1", Device: id, CDI: []string{cdi(d, id)}})
			}
			a.Claims["c-"+n] = result
		}
		all[d] = a
	}
	bad := pick(known...)
	if !faults {
		return all
	}
	switch r.Intn(8) {
	case 0:
		all[bad] = Answer{Fails: "device is busy"}
	case 1:
		all[bad] = Answer{Claims: map[string]Result{"c-" + pick(names...): {Error: "no such device"}}}
	}
	return all
}
