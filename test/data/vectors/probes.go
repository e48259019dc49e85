package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
)

func init() {
	suites["probe-request"] = suite{answer: asking(askProbeRequest)}
	// the probes are of real servers, in real time
	suites["probe-http"] = suite{answer: asking(askProbe), times: 2, atOnce: 16}
}

type probeRequestIn struct {
	HTTPGet           *v1.HTTPGetAction
	ContainerPorts    []v1.ContainerPort
	PodIP             string
	UserAgentFragment string
}

func askProbeRequest(in probeRequestIn) (any, error) {
	container := &v1.Container{Name: "c", Ports: in.ContainerPorts}
	request, err := httpprobe.NewRequestForHTTPGetAction(in.HTTPGet, container, in.PodIP, in.UserAgentFragment)
	if err != nil {
		return object{"error": err.Error()}, nil
	}
	// of the kubelet's own agent the version is left out
	own := "kube-" + in.UserAgentFragment + "/"
	headers := request.Header.Clone()
	if agent := headers["User-Agent"]; len(agent) == 1 && strings.HasPrefix(agent[0], own) {
		headers["User-Agent"] = []string{own + "MAJOR.MINOR"}
	}
	return object{"url": request.URL.String(), "requestURI": request.URL.RequestURI(), "host": request.Host, "headers": headers}, nil
}

// probeIn is what a server answers. Location: "same:PATH", "host:NAME" or a literal; PORT in it stands for the server's port.
type probeIn struct {
	Status, BodyBytes int
	Location          string
	FinalStatus       int
	RedirectsForEver  bool
	DelayMs           time.Duration
	HangsInBody       bool
	ClosesAtOnce      bool
	AnswersRaw        string
	TimeoutMs         time.Duration
}

func askProbe(in probeIn) (any, error) {
	if in.AnswersRaw != "" || in.ClosesAtOnce {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		go in.answerRaw(listener)
		return probe(listener.Addr(), in.TimeoutMs)
	}
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { in.serve(w, r, done) }))
	defer func() {
		close(done)
		server.CloseClientConnections()
		server.Close()
	}()
	return probe(server.Listener.Addr(), in.TimeoutMs)
}

func (in probeIn) answerRaw(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer connection.Close()
			if in.AnswersRaw != "" {
				_, _ = connection.Read(make([]byte, 4096))
				_, _ = io.WriteString(connection, in.AnswersRaw)
			}
		}()
	}
}

func (in probeIn) serve(w http.ResponseWriter, r *http.Request, done <-chan struct{}) {
	if strings.HasSuffix(r.URL.Path, "/final") && !in.RedirectsForEver {
		w.WriteHeader(in.FinalStatus)
		return
	}
	select {
	case <-time.After(in.DelayMs * time.Millisecond):
	case <-done:
		return
	}
	if location := in.locationAt(r.Context().Value(http.LocalAddrContextKey).(net.Addr)); location != "" {
		w.Header().Set("Location", location)
	}
	w.Header().Set("Content-Type", "text/plain")
	if in.HangsInBody {
		w.Header().Set("Content-Length", fmt.Sprint(in.BodyBytes+10))
	}
	w.WriteHeader(in.Status)
	if in.Status != http.StatusNoContent && in.Status != http.StatusNotModified {
		_, _ = io.WriteString(w, strings.Repeat("x", in.BodyBytes))
	}
	if in.HangsInBody {
		w.(http.Flusher).Flush()
		<-done
	}
}

func (in probeIn) locationAt(address net.Addr) string {
	location := strings.ReplaceAll(in.Location, "PORT", portOf(address))
	if path, ok := strings.CutPrefix(location, "same:"); ok {
		return "http://" + address.String() + path
	}
	if rest, ok := strings.CutPrefix(location, "host:"); ok {
		return "http://" + rest
	}
	return location
}

func portOf(address net.Addr) string { return fmt.Sprint(address.(*net.TCPAddr).Port) }

func probe(address net.Addr, timeoutMs time.Duration) (any, error) {
	request, err := httpprobe.NewProbeRequest(&url.URL{Scheme: "http", Host: address.String(), Path: "/start"}, http.Header{})
	if err != nil {
		return nil, err
	}
	result, output, err := httpprobe.New(false).Probe(request, timeoutMs*time.Millisecond)
	out := object{"result": result, "error": err != nil}
	if text, ok := ownText(output, portOf(address)); ok {
		out["output"] = text
	}
	return out, nil
}

// ownText tells whether an output is the kubelet's own text: what Go says of sockets changes with the moment.
func ownText(output, port string) (string, bool) {
	text := strings.NewReplacer("127.0.0.1:"+port, "HOST:PORT", "localhost:"+port, "localhost:PORT", ":"+port+"/", ":PORT/").Replace(output)
	if len(text) > 400 {
		return fmt.Sprintf("%s...(%d bytes)", text[:40], len(text)), true
	}
	own := strings.Trim(text, "x") == "" || strings.HasPrefix(text, "HTTP probe failed") || strings.HasPrefix(text, "Probe terminated redirects")
	return text, own
}
