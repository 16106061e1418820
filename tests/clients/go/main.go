// Makes every call of errors.json with grpc-go, and reads the errors with its status package, as any
// Go client would.
//
//	errors ADDRESS DESCRIPTORS CASES    exit 1 and a line for each that is not as expected
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

type errorCase struct {
	Method  string
	Request json.RawMessage
	Code    string
	Name    string
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
}

func load(path string) *protoregistry.Files {
	bytes, err := os.ReadFile(path)
	must(err)
	set := &descriptorpb.FileDescriptorSet{}
	must(proto.Unmarshal(bytes, set))
	files, err := protodesc.NewFiles(set)
	must(err)
	// So that status.Details() knows it.
	found, err := files.FindDescriptorByName("baton.v1.Error")
	must(err)
	must(protoregistry.GlobalTypes.RegisterMessage(
		dynamicpb.NewMessageType(found.(protoreflect.MessageDescriptor))))
	return files
}

func call(connection *grpc.ClientConn, files *protoregistry.Files, wanted errorCase) error {
	service, name, _ := strings.Cut(wanted.Method, "/")
	found, err := files.FindDescriptorByName(protoreflect.FullName("baton.v1." + service))
	must(err)
	method := found.(protoreflect.ServiceDescriptor).Methods().ByName(protoreflect.Name(name))
	request := dynamicpb.NewMessage(method.Input())
	must(protojson.Unmarshal(wanted.Request, request))
	path := fmt.Sprintf("/baton.v1.%s/%s", service, name)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if !method.IsStreamingServer() {
		return connection.Invoke(ctx, path, request, dynamicpb.NewMessage(method.Output()))
	}
	stream, err := connection.NewStream(ctx,
		&grpc.StreamDesc{ServerStreams: true, ClientStreams: method.IsStreamingClient()}, path)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(request); err != nil && err != io.EOF {
		return err
	}
	// A client that closes a stream in both directions at once may see its end before the refusal.
	if !method.IsStreamingClient() {
		if err := stream.CloseSend(); err != nil {
			return err
		}
	}
	for {
		if err := stream.RecvMsg(dynamicpb.NewMessage(method.Output())); err != nil {
			return err
		}
	}
}

// What is wrong with the answer; empty when nothing is.
func check(connection *grpc.ClientConn, files *protoregistry.Files, wanted errorCase) string {
	err := call(connection, files, wanted)
	found, ok := status.FromError(err)
	if err == nil || err == io.EOF || !ok {
		return fmt.Sprintf("no status: %v", err)
	}
	var code codes.Code
	must(code.UnmarshalJSON([]byte(`"` + wanted.Code + `"`)))
	if found.Code() != code {
		return fmt.Sprintf("the code is %v: %v", found.Code(), found.Message())
	}
	details := found.Details()
	if len(details) != 1 {
		return fmt.Sprintf("there are %d details", len(details))
	}
	detail, ok := details[0].(proto.Message)
	if !ok {
		return fmt.Sprintf("the detail is %v", details[0])
	}
	fields := detail.ProtoReflect().Descriptor().Fields()
	name := detail.ProtoReflect().Get(fields.ByName("name")).String()
	number := detail.ProtoReflect().Get(fields.ByName("code")).Uint()
	if name != wanted.Name || number == 0 {
		return fmt.Sprintf("the error is %s, %d", name, number)
	}
	return ""
}

func main() {
	files := load(os.Args[2])
	bytes, err := os.ReadFile(os.Args[3])
	must(err)
	var cases []errorCase
	must(json.Unmarshal(bytes, &cases))
	connection, err := grpc.NewClient(os.Args[1],
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(err)
	wrong := false
	for _, wanted := range cases {
		if complaint := check(connection, files, wanted); complaint != "" {
			fmt.Printf("%s %s: %s\n", wanted.Method, wanted.Request, complaint)
			wrong = true
		}
	}
	if wrong {
		os.Exit(1)
	}
}
