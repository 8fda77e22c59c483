//go:build ignore

// Command generate writes target.pb.go and target_grpc.pb.go from target.proto without a protoc binary: protocompile parses the file,
// and the two generators, pinned in .ci/tools.mod, are handed the request that protoc would send them. It is excluded from builds
// because its one dependency is a tool's and must not enter the product's go.mod:
//
//	go run -modfile=.ci/tools.mod ./sdk/internal/pb/generate/main.go [-check]
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const source = "target.proto"

func main() {
	check := flag.Bool("check", false, "write nothing; fail if the generated files differ from those on disk")
	flag.Parse()
	if err := run(context.Background(), *check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "sdk", "internal", "pb")
	request, err := compile(ctx, dir)
	if err != nil {
		return err
	}
	for _, generator := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
		files, err := generate(ctx, root, generator, request)
		if err != nil {
			return fmt.Errorf("%s: %w", generator, err)
		}
		for _, file := range files {
			if err := settle(filepath.Join(dir, filepath.Base(file.GetName())), file.GetContent(), check); err != nil {
				return err
			}
		}
	}
	return nil
}

// moduleRoot is the nearest directory above that holds go.mod, so that the command works from anywhere in the tree.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("no go.mod in this directory or above")
			return "", err
		}
	}
	return "", err
}

// compile turns the source into the request that protoc sends to a generator.
func compile(ctx context.Context, dir string) (*pluginpb.CodeGeneratorRequest, error) {
	compiler := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{dir}},
		SourceInfoMode: protocompile.SourceInfoStandard, // comments, for the generated code
	}
	files, err := compiler.Compile(ctx, source)
	if err != nil {
		return nil, err
	}
	request := &pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{source},
		Parameter:      proto.String("paths=source_relative"),
	}
	for _, file := range files {
		request.ProtoFile = append(request.ProtoFile, proto.Clone(protoutil.ProtoFromFileDescriptor(file)).(*descriptorpb.FileDescriptorProto))
	}
	return request, nil
}

func generate(ctx context.Context, root, generator string, request *pluginpb.CodeGeneratorRequest) ([]*pluginpb.CodeGeneratorResponse_File, error) {
	in, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "-modfile="+filepath.Join(root, ".ci", "tools.mod"), generator)
	cmd.Dir, cmd.Stdin, cmd.Stderr = root, bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(out, &response); err != nil {
		return nil, fmt.Errorf("read its response: %w", err)
	}
	if response.Error != nil {
		return nil, errors.New(response.GetError())
	}
	return response.File, nil
}

// settle writes one generated file, or in check mode compares it.
func settle(path, content string, check bool) error {
	if !check {
		return os.WriteFile(path, []byte(content), 0o644)
	}
	have, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if string(have) != content {
		return fmt.Errorf("%s is not what %s generates; run `make generate`", path, source)
	}
	return nil
}
