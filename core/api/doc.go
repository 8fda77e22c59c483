// Package api is the HTTP API of a host, and its OpenAPI document.
//
// It translates and guards, nothing more: each call becomes one method of Host or Pipeline, which core/host implements, and each answer
// a value of sdk/client. It keeps no state and starts no goroutine; net/http's server owns those that run its handlers. Paths and shapes
// that the ancestor's clients know are kept. A GET never changes anything.
package api
