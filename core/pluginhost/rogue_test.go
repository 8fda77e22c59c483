package pluginhost

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/rpc"
)

// rogueStdout is where a rogue finds its standard output: the SDK, which this binary holds too, has put standard error in its place.
const rogueStdout = 9

// behaviourVar names what a rogue does.
const behaviourVar = "CAIRN_TEST_BEHAVIOUR"

// rogue is a plugin that was written against the wire, without the SDK and with no good will. What its behaviour does not answer it
// answers as a plugin should.
type rogue struct{ behaviour string }

func (r rogue) serve() {
	if r.behaviour == "shut" {
		r.serveShut()
	}
	if r.behaviour == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
	}
	stdout := os.NewFile(rogueStdout, "stdout")
	defer runtime.KeepAlive(stdout) // go-plugin puts a stream of the connection in its place, and nobody shall close the descriptor
	os.Stdout = stdout
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: rpc.Handshake(),
		Plugins:         plugin.PluginSet{rpc.Name: roguePlugin{}},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			limit := grpc.MaxSendMsgSize(64 << 20)
			return grpc.NewServer(append(opts, limit, grpc.UnknownServiceHandler(r.handle), grpc.StreamInterceptor(r.intercept))...)
		},
	})
}

type roguePlugin struct{ plugin.NetRPCUnsupportedPlugin }

func (roguePlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error { return nil }

func (roguePlugin) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.ErrUnsupported
}

// rogueCall is one call of the host: its method, its request by the names of the protocol, and the stream to answer on.
type rogueCall struct {
	grpc.ServerStream
	method string
	in     *dynamicpb.Message
	out    protoreflect.MessageDescriptor
}

func (r rogue) handle(_ any, stream grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(stream)
	name := full[strings.LastIndex(full, "/")+1:]
	found, err := protoregistry.GlobalFiles.FindDescriptorByName("cairn.target.v1.Target")
	if err != nil {
		return err
	}
	method := found.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(name))
	call := rogueCall{stream, name, dynamicpb.NewMessage(method.Input()), method.Output()}
	if err := stream.RecvMsg(call.in); err != nil {
		return err
	}
	if do := misdeeds()[r.behaviour+" "+name]; do != nil {
		return do(call)
	}
	return call.behave()
}

// send answers with a message in the protocol's JSON.
func (c rogueCall) send(texts ...string) error {
	for _, text := range texts {
		message := dynamicpb.NewMessage(c.out)
		if err := protojson.Unmarshal([]byte(text), message); err != nil {
			return err
		}
		if err := c.SendMsg(message); err != nil {
			return err
		}
	}
	return nil
}

// field is a field of the request.
func (c rogueCall) field(name string) protoreflect.Value {
	return c.in.Get(c.in.Descriptor().Fields().ByName(protoreflect.Name(name)))
}

// eachRoot calls f with the path of each root and the name of its nonce file.
func (c rogueCall) eachRoot(f func(id, path, nonceFile string)) {
	roots := c.field("roots").List()
	for i := range roots.Len() {
		root := roots.Get(i).Message()
		text := func(name string) string {
			return root.Get(root.Descriptor().Fields().ByName(protoreflect.Name(name))).String()
		}
		f(text("id"), text("path"), text("nonce_file"))
	}
}

// behave is the whole of a plugin that stores nothing.
func (c rogueCall) behave() error {
	switch c.method {
	case "Describe":
		return c.send(`{"name":"rogue","version":"6.6.6"}`)
	case "Configure":
		var proofs []string
		c.eachRoot(func(id, path, file string) {
			nonce, _ := os.ReadFile(filepath.Join(path, file))
			proofs = append(proofs, fmt.Sprintf(`{"root":%q,"nonce":%q}`, id, base64.StdEncoding.EncodeToString(nonce)))
		})
		return c.send(`{"proofs":[` + strings.Join(proofs, ",") + `]}`)
	case "Put":
		return c.send(`{"done":{}}`)
	case "List":
		return c.send(`{"end":true}`)
	case "Get":
		return failed(`{"code":"NOT_FOUND"}`)
	}
	return c.send(`{}`)
}

// failed ends a call with an error, in the protocol's JSON.
func failed(text string) error {
	found, err := protoregistry.GlobalTypes.FindMessageByName("cairn.target.v1.TargetError")
	if err != nil {
		return err
	}
	detail := found.New().Interface()
	if err := protojson.Unmarshal([]byte(text), detail); err != nil {
		return err
	}
	st, err := status.New(codes.Internal, "rogue").WithDetails(protoadaptOf(detail))
	if err != nil {
		return err
	}
	return st.Err()
}

func (c rogueCall) hang() error {
	<-c.Context().Done()
	return c.Context().Err()
}

// misdeeds are the behaviours: "NAME METHOD" → what is done instead.
func misdeeds() map[string]func(rogueCall) error {
	digest := sha256.Sum256([]byte("hello"))
	end := fmt.Sprintf(`{"end":{"size":"5","sha256":%q}}`, base64.StdEncoding.EncodeToString(digest[:]))
	const escape = `\u001b[2J\r\nsuccess: pushed\u202e`
	return map[string]func(rogueCall) error{
		"never-describes Describe":   rogueCall.hang,
		"never-configures Configure": rogueCall.hang,
		"never-validates Validate":   rogueCall.hang,
		"never-deletes Delete":       func(c rogueCall) error { return c.hang() },
		"mute Put":                   rogueCall.hang,
		"mute Drain":                 rogueCall.hang,
		"stubborn Drain":             rogueCall.hang,
		"confused Describe":          func(rogueCall) error { return status.Error(codes.Unknown, "exception calling application") },
		"confused Validate":          func(rogueCall) error { return status.Error(codes.Unknown, "exception calling application") },
		"panicking Validate":         func(rogueCall) error { return failed(`{"message":"the plugin panicked at x.go:1: nil map"}`) },
		"garbled Describe":           func(c rogueCall) error { return c.SendMsg(rawBytes("\xff\xff\xff")) },
		"nameless Describe":          func(c rogueCall) error { return c.send(`{}`) },
		"protean Describe": func(c rogueCall) error { // another one each time it is started, and each time it is asked
			return c.send(fmt.Sprintf(`{"name":"rogue-%d","version":%q,"schema":{"attributes":[{"name":"x","type":"nonsense"}]}}`, os.Getpid(), time.Now()))
		},
		"vast Describe": func(c rogueCall) error {
			return c.send(`{"name":"` + strings.Repeat("n", 3<<20) + `","doc":"` + strings.Repeat("d", 3<<20) + `"}`)
		},
		"vaster Describe":     func(c rogueCall) error { return c.send(`{"name":"` + strings.Repeat("n", 30<<20) + `"}`) },
		"liar Configure":      func(c rogueCall) error { return c.send(`{"proofs":[{"root":"spool","nonce":"Z3Vlc3M="}]}`) },
		"elsewhere Configure": func(c rogueCall) error { return c.send(`{"proofs":[{"root":"/","nonce":""},{}]}`) },
		"chatty Put": func(c rogueCall) error {
			return c.send(`{"done":{"version":"`+escape+`"}}`, `{"done":{}}`, `{}`, `{"progress":{"bytes":"1"}}`)
		},
		"empty Put": func(rogueCall) error { return nil },
		"backwards Put": func(c rogueCall) error {
			return c.flood(3_000, `{"progress":{"bytes":"-9223372036854775808"}}`, `{"done":{"sha256":"AAAA"}}`)
		},
		"flood Put":   func(c rogueCall) error { return c.flood(5_000, `{"progress":{"bytes":"1"}}`, `{"done":{}}`) },
		"endless Put": func(c rogueCall) error { return c.flood(1<<40, `{"progress":{"bytes":"1"}}`, ``) },
		"hint Put": func(rogueCall) error {
			return failed(`{"code":"THROTTLED","hint":"` + strings.Repeat("h", 10<<20) + `"}`)
		},
		"escape Put": func(rogueCall) error {
			return failed(`{"code":"THROTTLED","message":"` + escape + `","hint":"` + escape + `"}`)
		},
		"unknown Put": func(rogueCall) error {
			return failed(`{"code":99,"message":"m","retryAfterNanos":"9223372036854775807"}`)
		},
		"gone Put":        func(rogueCall) error { return failed(`{"code":"PLUGIN_GONE","message":"m"}`) },
		"bare Put":        func(rogueCall) error { return status.Error(codes.Code(77), strings.Repeat("b", 1<<20)) },
		"unavailable Put": func(rogueCall) error { return status.Error(codes.Unavailable, "broken connection, as gRPC says it") },
		"huge Get":        func(c rogueCall) error { return c.send(`{"open":{"size":"9223372036854775807"}}`) },
		"long Get": func(c rogueCall) error {
			return c.send(`{"open":{"size":"5"}}`, `{"data":"aGVsbG8gYW5kIG1vcmU="}`, end)
		},
		"short Get": func(c rogueCall) error { return c.send(`{"open":{"size":"5"}}`, `{"data":"aGVs"}`, end) },
		"other Get": func(c rogueCall) error { return c.send(`{"open":{"size":"5"}}`, `{"data":"aGFsbG8="}`, end) },
		"overlong Get": func(c rogueCall) error {
			return errors.Join(c.send(`{"open":{"size":"5"}}`), c.flood(1<<40, `{"data":"aGVsbG8="}`, ``))
		},
		"unopened Get":            func(c rogueCall) error { return c.send(end) },
		"absent Get":              func(c rogueCall) error { return c.send(`{"open":{"size":"5"}}`, end) }, // with a sink: says that it wrote
		"unordered List":          func(c rogueCall) error { return c.send(`{"objects":[{"key":"b"},{"key":"a"}],"end":true}`) },
		"escape List":             func(c rogueCall) error { return c.send(`{"objects":[{"key":"` + escape + `"}],"end":true}`) },
		"negative List":           func(c rogueCall) error { return c.send(`{"objects":[{"key":"a","size":"-1"}],"end":true}`) },
		"unended List":            func(c rogueCall) error { return c.send(`{"objects":[{"key":"a"}]}`) },
		"stranger Delete":         func(c rogueCall) error { return c.send(`{"errors":[{"key":"another","code":"NOT_FOUND"}]}`) },
		"undecodable Put":         func(c rogueCall) error { return c.SendMsg(rawBytes("\xff\xff\xff")) },
		"disconnects Put":         disconnect,
		"deletes-nonce Configure": func(c rogueCall) error { defer c.eachRoot(removeNonce); return c.behave() },
		"links-nonce Configure":   linkNonce,
		"spews Put":               spew,
		"spoils Put":              spoilSpool,
		"empties Put":             emptySpool,
	}
}

// flood sends one message many times, and then another.
func (c rogueCall) flood(n int, text, last string) error {
	message := dynamicpb.NewMessage(c.out)
	if err := protojson.Unmarshal([]byte(text), message); err != nil {
		return err
	}
	for range n {
		if err := c.SendMsg(message); err != nil {
			return err
		}
	}
	return c.send(last)
}

// disconnect cuts every connection of this process, its listening socket too, and lives on.
func disconnect(c rogueCall) error {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		var fd int
		if _, err := fmt.Sscan(entry.Name(), &fd); err == nil && fd > 2 {
			_ = syscall.Shutdown(fd, syscall.SHUT_RDWR) // ENOTSOCK of what is none
		}
	}
	select {}
}

// spew writes 32 MiB without a newline to what was standard output, and then lines that look like another handshake.
func spew(c rogueCall) error {
	text := append(bytes.Repeat([]byte("x"), 32<<20), "\n1|1|unix|/tmp/evil|grpc|\n"...)
	for len(text) > 0 {
		n, err := syscall.Write(rogueStdout, text)
		if err != nil {
			return err
		}
		text = text[n:]
	}
	return c.behave()
}

func removeNonce(_, path, file string) { _ = os.Remove(filepath.Join(path, file)) }

// linkNonce puts a link to a file of the operator's in the place of the nonce, for the host to write through or to remove.
func linkNonce(c rogueCall) error {
	err := c.behave()
	c.eachRoot(func(_, path, file string) {
		removeNonce("", path, file)
		_ = os.Symlink(os.Getenv("VICTIM"), filepath.Join(path, file))
	})
	return err
}

// eachSpoolFile is every file in the spool but the host's own marks.
func eachSpoolFile(f func(path string)) {
	entries, _ := os.ReadDir(os.Getenv("SPOOL"))
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") {
			f(filepath.Join(os.Getenv("SPOOL"), entry.Name()))
		}
	}
}

// spoilSpool overwrites what lies in the spool for other calls, and plants links where the next files may come to lie.
func spoilSpool(c rogueCall) error {
	eachSpoolFile(func(path string) {
		if content, err := os.ReadFile(path); err == nil {
			_ = os.WriteFile(path, bytes.ToUpper(content), 0o600)
		}
	})
	return c.behave()
}

func emptySpool(c rogueCall) error {
	eachSpoolFile(func(path string) { _ = os.Remove(path) })
	return c.behave()
}

// sums of a body, for tests that put one.
func bodyOf(f *os.File, content []byte) sdk.Body {
	return sdk.FileBody(f, 0, int64(len(content)), sdk.SumsOf(content))
}
