// Package pb is the wire of the plugin protocol: target.proto and the code generated from it. Only sdk/rpc uses it. It is generated
// by generate/main.go, which needs no protoc binary; `-check` proves that generating again would change nothing.
package pb

//go:generate go run -modfile=../../../.ci/tools.mod ./generate/main.go
