// The answers of a kubelet's DRA manager to the cases that `cases.go` makes: vectors of the suite `claims` in test/vectors. The manager is
// the version's own (cm/dra), drivers are gRPC servers on unix sockets, and the API server is an HTTP server that knows the case's
// claims. Built in a module that requires k8s.io/kubernetes v1.X.Y with its staging modules replaced by their v0.X.Y (1.34 to
// 1.37); what differs between them in Go is called by reflection. `claims SEED COUNT >claims.jsonl`.
//
// Go walks maps in an order of its own each time. A case whose answers differ is run until they have all been seen, and the vector
// holds the first of them in the order of their JSON, which is that of the drivers' names.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "unsafe" // go:linkname

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/dra"
	"k8s.io/kubernetes/pkg/kubelet/config"
)

type Object = map[string]any
type Case struct {
	Name string `json:"name"`
	In   Input  `json:"in"`
}
type Input struct {
	Gates  map[string]bool `json:"gates,omitempty"`
	Claims []Object        `json:"claims,omitempty"`
	// Driver -> the gRPC services that it registers with.
	Drivers map[string][]string `json:"drivers,omitempty"`
	// The text of dra_manager_state.
	State *string `json:"state,omitempty"`
	// Driver -> pool/device -> its health, so many seconds old.
	Health map[string]map[string]Health `json:"health,omitempty"`
	Ops    []Op                         `json:"ops"`
}
type Health struct {
	Health         string `json:"health"`
	Message        string `json:"message,omitempty"`
	AgeSeconds     int    `json:"ageSeconds"`
	TimeoutSeconds int    `json:"timeoutSeconds,omitempty"`
}
type Op struct {
	Op        string            `json:"op"`
	Pod       json.RawMessage   `json:"pod,omitempty"`
	Container string            `json:"container,omitempty"`
	Answers   map[string]Answer `json:"answers,omitempty"`
	Driver    string            `json:"driver,omitempty"`
	Claims    []Object          `json:"claims,omitempty"`
	Active    []string          `json:"active,omitempty"`
	Services  []string          `json:"services,omitempty"`
	// True: the order of the CDI devices hangs on chance, and the answer has them sorted.
	AnyOrder bool `json:"anyOrder,omitempty"`
}

// Answer is a driver's to one call: an error of the call, or what it says of each claim by its uid, where it is asked about it.
type Answer struct {
	Fails  string            `json:"fails,omitempty"`
	Claims map[string]Result `json:"claims,omitempty"`
	// Uids that it answers unasked.
	Unasked []string `json:"unasked,omitempty"`
}
type Result struct {
	Error   string   `json:"error,omitempty"`
	Devices []Device `json:"devices,omitempty"`
}
type Device struct {
	Requests []string `json:"requests,omitempty"`
	Pool     string   `json:"pool"`
	Device   string   `json:"device"`
	CDI      []string `json:"cdi,omitempty"`
	Share    *string  `json:"share,omitempty"`
}
type Call struct {
	Driver  string   `json:"driver"`
	Service string   `json:"service"`
	Method  string   `json:"method"`
	Claims  []string `json:"claims"`
}
type OpOut struct {
	Calls []Call              `json:"calls,omitempty"`
	Error *string             `json:"error,omitempty"`
	CDI   []string            `json:"cdi,omitempty"`
	Might map[string]bool     `json:"mightNeedToUnprepare,omitempty"`
	Stat  map[string][]Status `json:"status,omitempty"`
	State []any               `json:"state,omitempty"`
	// The file's own text, where it does not hang on chance.
	File string `json:"file,omitempty"`
}
type Status struct {
	Name      string           `json:"name"`
	Resources []ResourceHealth `json:"resources"`
}
type ResourceHealth struct {
	ID      string `json:"resourceID"`
	Health  string `json:"health"`
	Message string `json:"message,omitempty"`
}
type Out struct {
	Start *string `json:"start,omitempty"`
	Ops   []OpOut `json:"ops,omitempty"`
}

//go:linkname reconcileLoop k8s.io/kubernetes/pkg/kubelet/cm/dra.(*Manager).reconcileLoop
func reconcileLoop(m *dra.Manager, ctx context.Context)

type World struct {
	mutex   sync.Mutex
	claims  map[string]Object
	answers map[string]Answer
	calls   []Call
	active  []*v1.Pod
	ready   bool
}

var world *World

func main() {
	klog.SetOutput(os.Stderr)
	klog.LogToStderr(false)
	klog.SetLogger(klog.Logger{})
	seed, _ := strconv.ParseInt(os.Args[1], 10, 64)
	count, _ := strconv.Atoi(os.Args[2])
	client, err := kubernetes.NewForConfig(&rest.Config{Host: httptest.NewServer(http.HandlerFunc(serveAPI)).URL, QPS: -1})
	must(err)
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	for _, c := range cases(seed, count) {
		if !setGates(c.In.Gates) {
			continue
		}
		out := settled(client, &c)
		line, err := json.Marshal(Object{"name": c.Name, "in": c.In, "out": out})
		must(err)
		w.Write(append(line, '\n'))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

var gates = []string{"DRAExtendedResource", "DRAOptionalNodeOperations", "DRAWorkloadResourceClaims", "GenericWorkload",
	"ResourceHealthStatus", "ResourceHealthStatusMessage", "NodeDeclaredFeatures"}

// setGates is false where the version does not know a gate, or has locked it to another value.
func setGates(given map[string]bool) bool {
	known := utilfeature.DefaultMutableFeatureGate.GetAll()
	all := map[string]bool{}
	for _, name := range gates {
		spec, ok := known[featuregate.Feature(name)]
		value, named := given[name]
		if !ok && named {
			return false
		}
		if !ok || spec.LockToDefault {
			if named && value != spec.Default {
				return false
			}
			continue
		}
		all[name] = spec.Default
		if named {
			all[name] = value
		}
	}
	must(utilfeature.DefaultMutableFeatureGate.SetFromMap(all))
	return true
}

// settled runs a case until its answers repeat, and gives the first of them in the order of their JSON.
func settled(client kubernetes.Interface, c *Case) Out {
	seen := map[string]Out{}
	lists := map[int]map[string]bool{}
	for n := 0; n < 24 || (len(seen) > 1 && n < 200); n++ {
		out := run(client, c.In)
		for i := range out.Ops {
			if lists[i] == nil {
				lists[i] = map[string]bool{}
			}
			lists[i][strings.Join(out.Ops[i].CDI, " ")] = true
		}
		text, _ := json.Marshal(out)
		seen[string(text)] = out
	}
	texts := []string{}
	for text := range seen {
		texts = append(texts, text)
	}
	sort.Strings(texts)
	best := seen[texts[0]]
	for i := range best.Ops {
		if len(lists[i]) > 1 {
			c.In.Ops[i].AnyOrder = true
			sort.Strings(best.Ops[i].CDI)
		}
	}
	return best
}

func serveAPI(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if r.Method != "GET" || len(parts) != 7 || parts[5] != "resourceclaims" {
		json.NewEncoder(w).Encode(metav1.Status{Status: "Success"})
		return
	}
	world.mutex.Lock()
	claim, ok := world.claims[parts[4]+"/"+parts[6]]
	world.mutex.Unlock()
	if ok {
		json.NewEncoder(w).Encode(claim)
		return
	}
	status := apierrors.NewNotFound(schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}, parts[6]).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	w.WriteHeader(404)
	json.NewEncoder(w).Encode(status)
}

func claimsByName(claims []Object) map[string]Object {
	all := map[string]Object{}
	for _, c := range claims {
		meta := c["metadata"].(Object)
		all[meta["namespace"].(string)+"/"+meta["name"].(string)] = c
	}
	return all
}

type session struct {
	dir       string
	client    kubernetes.Interface
	drivers   map[string][]string
	endpoints map[string]string
	manager   *dra.Manager
	ctx       context.Context
	cancel    context.CancelFunc
}

func run(client kubernetes.Interface, in Input) Out {
	dir, err := os.MkdirTemp("", "dra")
	must(err)
	defer os.RemoveAll(dir)
	world = &World{claims: claimsByName(in.Claims)}
	if in.State != nil {
		must(os.WriteFile(filepath.Join(dir, "dra_manager_state"), []byte(*in.State), 0o600))
	}
	if in.Health != nil {
		must(os.WriteFile(filepath.Join(dir, "dra_health_state"), healthFile(in.Health), 0o600))
	}
	s := &session{dir: dir, client: client, drivers: map[string][]string{}, endpoints: map[string]string{}}
	if err := s.start(); err != nil {
		text := err.Error()
		return Out{Start: &text}
	}
	defer func() {
		for name := range s.endpoints {
			s.deregister(name) // closes its connections
		}
		s.cancel()
	}()
	for name, services := range in.Drivers {
		stop := serveDriver(name, filepath.Join(dir, name+".sock"))
		defer stop()
		s.endpoints[name] = filepath.Join(dir, name+".sock")
		if text := s.register(name, services); text != nil {
			panic(*text)
		}
	}
	out := Out{}
	for _, op := range in.Ops {
		out.Ops = append(out.Ops, s.do(op))
	}
	return out
}

func healthFile(in map[string]map[string]Health) []byte {
	all := Object{}
	for driver, devices := range in {
		list := Object{}
		for key, h := range devices {
			pool, device, _ := strings.Cut(key, "/")
			one := Object{"PoolName": pool, "DeviceName": device, "Health": h.Health,
				"LastUpdated": time.Now().Add(-time.Duration(h.AgeSeconds) * time.Second)}
			if h.TimeoutSeconds != 0 {
				one["HealthCheckTimeout"] = time.Duration(h.TimeoutSeconds) * time.Second
			}
			if h.Message != "" {
				one["Message"] = h.Message
			}
			list[key] = one
		}
		all[driver] = Object{"Devices": list}
	}
	text, _ := json.Marshal(all)
	return text
}

func (s *session) start() error {
	m, err := dra.NewManager(klog.Background(), s.client, s.dir)
	if err != nil {
		return err
	}
	s.manager = m
	s.ctx, s.cancel = context.WithCancel(context.Background())
	start := reflect.ValueOf(m.Start)
	getNode := reflect.MakeFunc(start.Type().In(2), func([]reflect.Value) []reflect.Value {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
		return []reflect.Value{reflect.ValueOf(node), reflect.Zero(reflect.TypeFor[error]())}
	})
	ready := config.NewSourcesReady(func(sets.Set[string]) bool { return world.ready })
	active := dra.ActivePodsFunc(func() []*v1.Pod { return world.active })
	start.Call([]reflect.Value{reflect.ValueOf(s.ctx), reflect.ValueOf(active), getNode, reflect.ValueOf(ready)})
	for name, services := range s.drivers {
		s.register(name, services)
	}
	return nil
}

func (s *session) register(name string, services []string) *string {
	method := reflect.ValueOf(s.manager.GetWatcherHandler()).MethodByName("RegisterPlugin")
	args := []reflect.Value{reflect.ValueOf(name), reflect.ValueOf(s.endpoints[name]), reflect.ValueOf(services),
		reflect.ValueOf((*time.Duration)(nil))}
	if method.Type().NumIn() == 5 {
		args = append([]reflect.Value{reflect.ValueOf(s.ctx)}, args...)
	}
	if err, _ := method.Call(args)[0].Interface().(error); err != nil {
		// the folder's name is chance
		text := strings.ReplaceAll(err.Error(), s.dir, "/plugins")
		return &text
	}
	s.drivers[name] = services
	return nil
}

func (s *session) deregister(name string) {
	method := reflect.ValueOf(s.manager.GetWatcherHandler()).MethodByName("DeRegisterPlugin")
	args := []reflect.Value{reflect.ValueOf(name), reflect.ValueOf(s.endpoints[name])}
	if method.Type().NumIn() == 3 {
		args = append([]reflect.Value{reflect.ValueOf(s.ctx)}, args...)
	}
	method.Call(args)
	delete(s.drivers, name)
}

func (s *session) do(op Op) OpOut {
	world.mutex.Lock()
	world.calls, world.answers = nil, op.Answers
	if op.Claims != nil {
		world.claims = claimsByName(op.Claims)
	}
	world.mutex.Unlock()
	pod := &v1.Pod{}
	if op.Pod != nil {
		must(json.Unmarshal(op.Pod, pod))
	}
	out := OpOut{}
	var err error
	switch op.Op {
	case "prepare":
		err = s.prepare(pod)
	case "unprepare":
		err = s.manager.UnprepareResources(s.ctx, pod)
	case "resources":
		err = s.resources(pod, op.Container, &out)
	case "status":
		out.Stat = s.status(pod)
	case "restart":
		drivers := maps.Clone(s.drivers)
		for name := range drivers {
			s.deregister(name)
		}
		s.cancel()
		s.drivers = drivers
		err = s.start()
	case "register":
		return OpOut{Error: s.register(op.Driver, op.Services)}
	case "deregister":
		s.deregister(op.Driver)
	case "reconcile":
		world.active, world.ready = nil, true
		for _, uid := range op.Active {
			p := &v1.Pod{}
			p.UID = types.UID(uid)
			world.active = append(world.active, p)
		}
		reconcileLoop(s.manager, s.ctx)
		world.ready = false
	case "claims":
	default:
		panic("no such op: " + op.Op)
	}
	if err != nil {
		text := err.Error()
		out.Error = &text
	}
	world.mutex.Lock()
	out.Calls = settledCalls(world.calls, op.Op, err)
	world.mutex.Unlock()
	if op.Op == "prepare" || op.Op == "unprepare" {
		out.Might = map[string]bool{string(pod.UID): s.manager.PodMightNeedToUnprepareResources(pod.UID)}
	}
	if op.Op != "resources" && op.Op != "status" && op.Op != "claims" {
		s.state(&out)
	}
	return out
}

// settledCalls puts in order what Go's maps do not: the drivers, where all of them were called, and the claims that a pod leaves.
func settledCalls(calls []Call, op string, err error) []Call {
	for _, c := range calls {
		if op != "prepare" {
			sort.Strings(c.Claims)
		}
	}
	if err == nil {
		sort.SliceStable(calls, func(i, j int) bool { return calls[i].Driver < calls[j].Driver })
	}
	return calls
}

// prepare says how it ends also where a kubelet would: 1.36 looks up the PodGroup of a pod that has none.
func (s *session) prepare(pod *v1.Pod) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return s.manager.PrepareResources(s.ctx, pod)
}

func (s *session) resources(pod *v1.Pod, name string, out *OpOut) error {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name != name {
			continue
		}
		info, err := s.manager.GetResources(pod, &pod.Spec.Containers[i])
		if err != nil {
			return err
		}
		out.CDI = []string{}
		for _, d := range info.CDIDevices {
			out.CDI = append(out.CDI, d.Name)
		}
	}
	return nil
}

func (s *session) status(pod *v1.Pod) map[string][]Status {
	status := pod.Status.DeepCopy()
	update := reflect.ValueOf(s.manager.UpdateAllocatedResourcesStatus)
	args := []reflect.Value{reflect.ValueOf(pod), reflect.ValueOf(status)}
	if update.Type().NumIn() == 3 {
		args = append([]reflect.Value{reflect.ValueOf(klog.Background())}, args...)
	}
	update.Call(args)
	text, _ := json.Marshal(status.ContainerStatuses)
	var list []struct {
		Name   string
		Status []Status `json:"allocatedResourcesStatus"`
	}
	must(json.Unmarshal(text, &list))
	all := map[string][]Status{}
	for _, c := range list {
		sort.Slice(c.Status, func(i, j int) bool { return c.Status[i].Name < c.Status[j].Name })
		all[c.Name] = c.Status
	}
	return all
}

func (s *session) state(out *OpOut) {
	text, err := os.ReadFile(filepath.Join(s.dir, "dra_manager_state"))
	must(err)
	var file struct{ Data string }
	must(json.Unmarshal(text, &file))
	var data struct {
		ClaimInfoStateList []struct {
			ClaimUID, ClaimName, Namespace string
			PodUIDs, DriverState           any
		}
	}
	must(json.Unmarshal([]byte(file.Data), &data))
	list := data.ClaimInfoStateList
	sort.Slice(list, func(i, j int) bool {
		return list[i].Namespace+"/"+list[i].ClaimName < list[j].Namespace+"/"+list[j].ClaimName
	})
	out.State = []any{}
	for _, one := range list {
		out.State = append(out.State, one)
	}
	if len(list) < 2 {
		out.File = string(bytes.TrimSpace(text))
	}
}

// raw carries messages as their bytes.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = append([]byte{}, data...); return nil }
func (raw) Name() string                       { return "proto" }

func serveDriver(name, path string) func() {
	listener, err := net.Listen("unix", path)
	must(err)
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		full, _ := grpc.MethodFromServerStream(stream)
		parts := strings.Split(strings.Trim(full, "/"), "/")
		method := parts[1]
		var in []byte
		if err := stream.RecvMsg(&in); err != nil {
			return err
		}
		if method == "NodeWatchResources" {
			<-stream.Context().Done()
			return nil
		}
		dotted := strings.Split(parts[0], ".")
		call := Call{Driver: name, Service: dotted[len(dotted)-2], Method: method, Claims: claimsOf(in)}
		world.mutex.Lock()
		world.calls = append(world.calls, call)
		answer := world.answers[name]
		world.mutex.Unlock()
		if answer.Fails != "" {
			return fmt.Errorf("%s", answer.Fails)
		}
		out := responseOf(answer, method, call.Claims)
		return stream.SendMsg(&out)
	}))
	go server.Serve(listener)
	return server.Stop
}

// claimsOf gives namespace/name/uid of each claim of a request.
func claimsOf(in []byte) []string {
	list := []string{}
	for len(in) > 0 {
		_, _, n := protowire.ConsumeTag(in)
		claim, m := protowire.ConsumeBytes(in[n:])
		in = in[n+m:]
		fields := [4]string{}
		for len(claim) > 0 {
			field, _, n := protowire.ConsumeTag(claim)
			text, m := protowire.ConsumeBytes(claim[n:])
			claim = claim[n+m:]
			fields[field] = string(text)
		}
		list = append(list, fields[1]+"/"+fields[3]+"/"+fields[2])
	}
	return list
}

func field(out []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(out, number, protowire.BytesType), value)
}
func responseOf(answer Answer, method string, claims []string) []byte {
	var out []byte
	asked := append([]string{}, answer.Unasked...)
	for _, claim := range claims {
		asked = append(asked, strings.Split(claim, "/")[2])
	}
	for _, uid := range asked {
		result, ok := answer.Claims[uid]
		if !ok {
			continue
		}
		var one []byte
		number := protowire.Number(1)
		if method == "NodePrepareResources" {
			number = 2
			for _, d := range result.Devices {
				one = field(one, 1, deviceBytes(d))
			}
		}
		if result.Error != "" {
			one = field(one, number, []byte(result.Error))
		}
		out = field(out, 1, field(field(nil, 1, []byte(uid)), 2, one))
	}
	return out
}
func deviceBytes(d Device) []byte {
	var out []byte
	for _, r := range d.Requests {
		out = field(out, 1, []byte(r))
	}
	out = field(field(out, 2, []byte(d.Pool)), 3, []byte(d.Device))
	for _, id := range d.CDI {
		out = field(out, 4, []byte(id))
	}
	if d.Share != nil {
		out = field(out, 5, []byte(*d.Share))
	}
	return out
}
