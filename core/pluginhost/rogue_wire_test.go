package pluginhost

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/emptypb"
)

// protoadaptOf is a message as gRPC's status wants it.
func protoadaptOf(m proto.Message) protoadapt.MessageV1 { return protoadapt.MessageV1Of(m) }

// rawBytes is a message of which the host can make nothing: a field of its own number, broken off.
func rawBytes(text string) proto.Message {
	m := &emptypb.Empty{}
	m.ProtoReflect().SetUnknown(append(protowire.AppendTag(nil, 1, protowire.BytesType), text...))
	return m
}
