// A device plugin for the tests, with no more than gRPC itself: it serves v1beta1.DevicePlugin, registers, and comes back
// when kubelet.sock is another file or its own socket has gone. It tells on stdout what happens, a line each, and takes
// lists on stdin: `list a b:Unhealthy`. Builds with grpc-go of today and of 2021 (old-grpc.mod), which sends the path of
// the socket as :authority.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

var (
	dir      = flag.String("dir", "", "directory of kubelet.sock")
	resource = flag.String("resource", "", "resource that is registered")
	name     = flag.String("name", "go.sock", "name of the own socket")
)

type plugin struct {
	mutex   sync.Mutex
	devices []device
	changed []chan struct{}
}

func (p *plugin) list(devices []device) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.devices = devices
	for _, c := range p.changed {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (p *plugin) watch(stream grpc.ServerStream) error {
	changed := make(chan struct{}, 1)
	p.mutex.Lock()
	p.changed = append(p.changed, changed)
	p.mutex.Unlock()
	for {
		p.mutex.Lock()
		message := listMessage(p.devices)
		p.mutex.Unlock()
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

type method = func(interface{}, context.Context, func(interface{}) error, grpc.UnaryServerInterceptor) (interface{}, error)

func answering(answer func(request []byte) []byte) method {
	return func(_ interface{}, _ context.Context, decode func(interface{}) error, _ grpc.UnaryServerInterceptor) (interface{}, error) {
		var request []byte
		if err := decode(&request); err != nil {
			return nil, err
		}
		response := answer(request)
		return &response, nil
	}
}

func (p *plugin) serve() (*grpc.Server, error) {
	listener, err := net.Listen("unix", filepath.Join(*dir, *name))
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "v1beta1.DevicePlugin",
		HandlerType: (*interface{})(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "GetDevicePluginOptions", Handler: answering(func([]byte) []byte { return nil })},
			{MethodName: "Allocate", Handler: answering(func(request []byte) []byte {
				ids := allocateIDs(request)
				fmt.Println("allocate", strings.Join(ids, ","))
				return allocateAnswer(map[string]string{"DEVICES": strings.Join(ids, ",")})
			})},
		},
		Streams: []grpc.StreamDesc{{
			StreamName:    "ListAndWatch",
			ServerStreams: true,
			Handler:       func(_ interface{}, stream grpc.ServerStream) error { return p.watch(stream) },
		}},
	}, p)
	go server.Serve(listener)
	return server, nil
}

func register() error {
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Second)
	defer cancel()
	connection, err := grpc.DialContext(ctx, filepath.Join(*dir, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithBlock(),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}))
	if err != nil {
		return err
	}
	defer connection.Close()
	request := registerRequest("v1beta1", *name, *resource)
	var answer []byte
	return connection.Invoke(ctx, "/v1beta1.Registration/Register", &request, &answer, grpc.ForceCodec(raw{}))
}

// Which file a path is; 0: none.
func inode(path string) uint64 {
	info, err := os.Lstat(path)
	if err != nil {
		return 0
	}
	return info.Sys().(*syscall.Stat_t).Ino
}

func main() {
	flag.Parse()
	p := &plugin{devices: devicesOf(flag.Args())}
	go func() {
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			if words := strings.Fields(lines.Text()); len(words) > 0 && words[0] == "list" {
				p.list(devicesOf(words[1:]))
			}
		}
		os.Exit(0)
	}()
	kubelet, own := filepath.Join(*dir, "kubelet.sock"), filepath.Join(*dir, *name)
	var server *grpc.Server
	var known uint64
	for ; ; time.Sleep(100 * time.Millisecond) {
		now := inode(kubelet)
		if now == 0 || (now == known && inode(own) != 0) {
			continue
		}
		if server != nil {
			server.Stop()
		}
		os.Remove(own)
		var err error
		if server, err = p.serve(); err == nil {
			err = register()
		}
		if err != nil {
			fmt.Println("failed", grpc.Version, strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		known = now
		fmt.Println("registered", grpc.Version)
	}
}
