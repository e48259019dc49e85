// Asks a podresources socket as an exporter with grpc-go 1.38 does, which sends the socket's path as :authority, and
// prints the bytes of the answer in base64.
package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
)

// Messages as bytes: the test reads them.
type raw struct{}

func (raw) Marshal(v interface{}) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (raw) Name() string { return "proto" }

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	dial := func(ctx context.Context, path string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}
	connection, err := grpc.DialContext(ctx, os.Args[1], grpc.WithInsecure(), grpc.WithContextDialer(dial))
	if err != nil {
		panic(err)
	}
	defer connection.Close()
	// twice: the second time :authority comes by its place in the table
	for i := 0; i < 2; i++ {
		var request, answer []byte
		if err := connection.Invoke(ctx, "/v1.PodResourcesLister/List", &request, &answer, grpc.ForceCodec(raw{})); err != nil {
			panic(err)
		}
		fmt.Println(base64.StdEncoding.EncodeToString(answer))
	}
}
