package pluginhost

import (
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// intercept answers the services that go-plugin brings along, and which are no part of the contract, in the way of the behaviour.
func (r rogue) intercept(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	service := info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
	message, answers := map[string]struct {
		name string
		text func(i int) string
	}{
		"broker StartStream": {"plugin.ConnInfo", func(i int) string { return fmt.Sprintf(`{"serviceId":%d}`, i) }},
		"stdio StreamStdio":  {"plugin.StdioData", func(int) string { return `{"channel":"INVALID"}` }},
	}[r.behaviour+" "+service]
	if !answers {
		return next(srv, stream)
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(message.name))
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		m := kind.New().Interface()
		if err := protojson.Unmarshal([]byte(message.text(i)), m); err != nil {
			return err
		}
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
}
