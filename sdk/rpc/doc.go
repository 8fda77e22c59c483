// Package rpc carries the contract of package sdk between two processes. It is the only room that knows gRPC.
//
// A plugin's main calls Serve and nothing else. The host reaches the plugin through a Client, which it gets by dispensing Name from
// the set that Plugins returns to go-plugin; Client is an sdk.Target with Fetch beside it. InProcess joins both ends without a
// process, for tests and for the exam.
//
// Bulk bytes do not cross the RPC. A Put above sdk.MaxInline names a range of a file in the spool, and a Fetch names one to be filled;
// Configure proves first that the plugin sees the same directory. What does cross is small: requests, errors with everything a person
// needs, and an event a second that says how many bytes a call has moved. The host holds each call to two clocks over those events:
// silence means that the plugin hangs, events without bytes that its store does.
//
// Goroutines: a call's own end with the call. Serve's (the host's lifeline, signals) live as long as the process.
package rpc

import "time"

const (
	// messageLimit bounds a message in both directions. The largest is a Put of sdk.MaxInline bytes; a page of 1,000 objects or a
	// Delete of 1,000 keys stays below 1 MiB. gRPC's own limit of 4 MiB would hold, with less room than a foreign plugin may want.
	messageLimit = 8 << 20

	// trailerLimit bounds the error that a call ends with. The SDK sends at most six texts of maxErrorText, in base64, beside a message.
	trailerLimit = 512 << 10

	// beatEvery is how often a call in progress says so; a tenth of the host's patience.
	beatEvery = time.Second

	// dataFrame is the size of a Data event: the plateau of throughput lies between 256 KiB and 1 MiB.
	dataFrame = 256 << 10

	// pageObjects is the number of objects in a page of a listing.
	pageObjects = 1000
)
