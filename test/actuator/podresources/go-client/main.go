// Asks a podresources socket with the kubelet's own types, as exporters do, and prints what it says as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubelet/pkg/apis/podresources/v1alpha1"
)

// connect dials by a URL, or as the kubelet's own client does: the bare path as the target, and a dialer for it.
func connect(way, path string) (*grpc.ClientConn, error) {
	plain := grpc.WithTransportCredentials(insecure.NewCredentials())
	if way == "url" {
		return grpc.NewClient("unix://"+path, plain)
	}
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	return grpc.Dial(path, plain, grpc.WithContextDialer(dial))
}

func told(answer proto.Message, err error) json.RawMessage {
	if err != nil {
		said := status.Convert(err)
		text, _ := json.Marshal(map[string]string{"code": said.Code().String(), "message": said.Message()})
		return text
	}
	text, err := protojson.Marshal(answer)
	if err != nil {
		panic(err)
	}
	return text
}

func main() {
	way, path, namespace, name := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	conn, err := connect(way, path)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	client := podresources.NewPodResourcesListerClient(conn)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	answers := map[string]json.RawMessage{}
	list, err := client.List(ctx, &podresources.ListPodResourcesRequest{})
	answers["list"] = told(list, err)
	allocatable, err := client.GetAllocatableResources(ctx, &podresources.AllocatableResourcesRequest{})
	answers["allocatable"] = told(allocatable, err)
	get, err := client.Get(ctx, &podresources.GetPodResourcesRequest{PodName: name, PodNamespace: namespace})
	answers["get"] = told(get, err)
	missing, err := client.Get(ctx, &podresources.GetPodResourcesRequest{PodName: "none", PodNamespace: namespace})
	answers["missing"] = told(missing, err)
	alpha, err := v1alpha1.NewPodResourcesListerClient(conn).List(ctx, &v1alpha1.ListPodResourcesRequest{})
	answers["alpha"] = told(alpha, err)
	text, err := json.Marshal(answers)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}
