package main

import (
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// Messages as bytes: the tests write and read the few that they need themselves.
type raw struct{}

func (raw) Marshal(v interface{}) ([]byte, error) { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (raw) Name() string { return "proto" }

type device struct{ id, health string }

func devicesOf(words []string) []device {
	var devices []device
	for _, word := range words {
		parts := strings.SplitN(word+":Healthy", ":", 3)
		devices = append(devices, device{parts[0], parts[1]})
	}
	return devices
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

func listMessage(devices []device) []byte {
	var message []byte
	for _, d := range devices {
		message = appendText(message, 1, string(appendText(appendText(nil, 1, d.id), 2, d.health)))
	}
	return message
}

func registerRequest(version, endpoint, resource string) []byte {
	return appendText(appendText(appendText(nil, 1, version), 2, endpoint), 3, resource)
}

func allocateAnswer(envs map[string]string) []byte {
	var container []byte
	for name, value := range envs {
		container = appendText(container, 1, string(appendText(appendText(nil, 1, name), 2, value)))
	}
	return appendText(nil, 1, string(container))
}

// The ids of the first container's request.
func allocateIDs(request []byte) []string {
	var ids []string
	_, _, n := protowire.ConsumeTag(request)
	container, _ := protowire.ConsumeBytes(request[n:])
	for len(container) > 0 {
		_, _, n := protowire.ConsumeTag(container)
		id, m := protowire.ConsumeBytes(container[n:])
		ids = append(ids, string(id))
		container = container[n+m:]
	}
	return ids
}
