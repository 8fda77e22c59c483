package rudestore

import (
	"slices"
	"time"

	"github.com/cairnsync/cairn/sdk"
)

// Scenario is one call of a target on a bad day, and what must come of it.
type Scenario struct {
	Name     string    // the sentence that it proves
	Dialects []Dialect // whose bad day it is; nil = everyone's
	Call     Op        // Put, Get, List or Delete
	IfAbsent bool      // of a Put
	Taken    bool      // of a Put: somebody else's object has the key
	Large    bool      // of a Put: a body that does not fit into the buffers of a connection
	Fault    Fault
	Page     int  // keys on a page of a listing; 0 = as many as a vendor has
	GivesUp  bool // the caller ends its context when the store has the request
	Refused  bool // nothing listens at all
	Chain    bool // the server's credentials are not in Server: the target finds some itself, and may refresh them
	Stored   bool // of a Put, a Delete: it took place all the same
	Expect
	patience time.Duration      // 0 = the package's
	Except   map[Dialect]Expect // where a vendor has other words
}

// Expect is what a target must make of it.
type Expect struct {
	Err        error // nil = success, else an sdk.Code
	RetryAfter time.Duration
	Requests   int // that the target makes: nobody retries below the host
}

func (s Scenario) of(d Dialect) bool { return s.Dialects == nil || slices.Contains(s.Dialects, d) }

func (s Scenario) expect(d Dialect) Expect {
	if e, ok := s.Except[d]; ok {
		return e
	}
	return s.Expect
}

func fails(code sdk.Code) Expect { return Expect{Err: code, Requests: 1} }

// Scenarios is the list for all dialects.
func Scenarios() []Scenario {
	return slices.Concat(connectionScenarios(), throttleScenarios(), refusalScenarios(), refreshScenarios(),
		putScenarios(), getScenarios(), listScenarios(), deleteScenarios())
}

func allCalls() []Op { return []Op{Put, Get, List, Delete} }

// each makes a scenario of every call.
func each(name string, stored bool, s Scenario) []Scenario {
	var all []Scenario
	for _, op := range allCalls() {
		one := s
		one.Name, one.Call, one.Fault.On = name+": "+string(op), op, op
		one.Stored = stored && (op == Put || op == Delete)
		all = append(all, one)
	}
	return all
}

func connectionScenarios() []Scenario {
	return slices.Concat(
		each("a store that cannot be reached is Unavailable", false, Scenario{Refused: true, Expect: Expect{Err: sdk.Unavailable}}),
		each("a reply that is lost after the work is done is Unavailable", true, Scenario{Fault: Fault{Do: dropReply}, Expect: fails(sdk.Unavailable)}),
		each("a reply that comes late is a reply", true, Scenario{Fault: Fault{Do: delay}, Expect: Expect{Requests: 1}}),
		each("a store that takes a request and never answers holds nobody whose context has ended", false, Scenario{
			Fault: Fault{Do: silence}, GivesUp: true, Expect: fails(sdk.Cancelled),
		}),
	)
}

func throttleScenarios() []Scenario {
	slow := Scenario{Fault: Fault{Do: answer, what: slowDown}, Expect: fails(sdk.Throttled), Except: map[Dialect]Expect{
		GCS: fails(sdk.Unavailable), // its 503 says that the backend failed
	}}
	tooMany := Scenario{
		Fault: Fault{Do: answer, what: tooMany, retryAfter: "7"}, Expect: Expect{Err: sdk.Throttled, RetryAfter: 7 * time.Second, Requests: 1},
	}
	storm := slow
	storm.Fault.retryAfter = "120"
	storm.RetryAfter = 2 * time.Minute
	storm.Except = map[Dialect]Expect{GCS: {Err: sdk.Unavailable, RetryAfter: 2 * time.Minute, Requests: 1}}
	return slices.Concat(
		each("a storm of 503 in the vendor's own words asks for fewer requests", false, slow),
		each("a 503 with Retry-After tells how long", false, storm),
		each("a 429 with Retry-After is Throttled for so long", false, tooMany),
		each("an internal error of the store is Unavailable", false, Scenario{Fault: Fault{Do: answer, what: internalError}, Expect: fails(sdk.Unavailable)}),
	)
}

func refusalScenarios() []Scenario {
	plain := func(what trouble, code sdk.Code) Scenario {
		return Scenario{Fault: Fault{Do: answer, what: what}, Expect: fails(code)}
	}
	return slices.Concat(
		each("a 403 is PermissionDenied, whether there is such a key or not", false, plain(accessDenied, sdk.PermissionDenied)),
		each("credentials that the store does not accept are Unauthenticated", false, plain(wrongCredentials, sdk.Unauthenticated)),
		each("credentials that are configured and have expired are Unauthenticated", false, plain(expired, sdk.Unauthenticated)),
		each("a bucket that does not exist is a fault of the configuration, never an absent key", false, plain(noSuchBucket, sdk.InvalidConfig)),
		each("a 404 page of something before the store proves nothing about a key", false, Scenario{
			Fault: Fault{Do: page404}, Expect: fails(sdk.Unavailable), Except: map[Dialect]Expect{Azure: fails(sdk.InvalidConfig)},
		}),
		pageScenarios(),
		each("a redirect is a fault of the configuration, and is not followed", false, Scenario{
			Fault: Fault{Do: answer, what: moved, elsewhere: true}, Expect: fails(sdk.InvalidConfig),
		}),
		each("a store that does not know the operation is Unsupported", false, plain(notImplemented, sdk.Unsupported)),
	)
}

// pageScenarios leave Get out: what it answers is bytes, which only the host can tell from other bytes.
func pageScenarios() []Scenario {
	all := each("a page under status 200 is not a success", false, Scenario{Fault: Fault{Do: page200}, Expect: fails(sdk.Unavailable)})
	return slices.DeleteFunc(all, func(s Scenario) bool { return s.Call == Get })
}

// refreshScenarios are the one exception from "nobody retries below the host".
func refreshScenarios() []Scenario {
	return slices.Concat(
		each("credentials that have expired are refreshed, and the call made once more", true, Scenario{
			Dialects: []Dialect{S3}, Chain: true, Fault: Fault{Do: answer, what: expired, Times: 1}, Expect: Expect{Requests: 2},
		}),
		each("credentials that are expired after a refresh too are Unauthenticated", false, Scenario{
			Dialects: []Dialect{S3}, Chain: true, Fault: Fault{Do: answer, what: expired}, Expect: Expect{Err: sdk.Unauthenticated, Requests: 2},
		}),
	)
}

func putScenarios() []Scenario {
	put := func(name string, s Scenario) Scenario {
		s.Name, s.Call, s.Fault.On = name, Put, Put
		return s
	}
	return []Scenario{
		put("a 200 with an error in it is not a success: put", Scenario{
			Fault: Fault{Do: answerOK, what: internalError}, Expect: fails(sdk.Unavailable),
		}),
		put("a body that the store stops reading in the middle is Unavailable", Scenario{Fault: Fault{Do: readHalf}, Expect: fails(sdk.Unavailable)}),
		put("a checksum that the store finds wrong is Corrupt", Scenario{Fault: Fault{Do: answer, what: badDigest}, Expect: fails(sdk.Corrupt)}),
		put("a lost reply of a Put with IfAbsent leaves the object", Scenario{
			IfAbsent: true, Fault: Fault{Do: dropReply}, Stored: true, Expect: fails(sdk.Unavailable),
		}),
		put("a Put with IfAbsent that meets another one under way has not met an object", Scenario{
			Dialects: []Dialect{S3}, IfAbsent: true, Fault: Fault{Do: answer, what: conflict}, Expect: Expect{Err: sdk.Unavailable, Requests: 2}, // it looks
		}),
		put("a create that the store breaks off in its middle has not met an object, unless there is one", Scenario{
			IfAbsent: true, Large: true, Fault: Fault{Do: readLittle}, Expect: fails(sdk.Unavailable),
			Except: map[Dialect]Expect{S3: {Err: sdk.Unavailable, Requests: 2}}, // it looks
		}),
		put("a create that the store breaks off in its middle, because the key is taken, is Exists where the target looks", Scenario{
			IfAbsent: true, Taken: true, Large: true, Fault: Fault{Do: readLittle}, Expect: fails(sdk.Unavailable), // the host looks
			Except: map[Dialect]Expect{S3: {Err: sdk.Exists, Requests: 2}},
		}),
		put("a create that a proxy refuses with 412 has not met an object", Scenario{
			IfAbsent: true, Fault: Fault{Do: page412}, Expect: fails(sdk.Unavailable),
			Except: map[Dialect]Expect{S3: {Err: sdk.Unavailable, Requests: 2}}, // it looks
		}),
		put("a Put with IfAbsent that meets an object is Exists", Scenario{
			IfAbsent: true, Fault: Fault{Do: answer, what: keyExists}, Expect: fails(sdk.Exists),
		}),
	}
}

func getScenarios() []Scenario {
	get := func(name string, s Scenario) Scenario {
		s.Name, s.Call, s.Fault.On = name, Get, Get
		return s
	}
	return []Scenario{
		get("a body that is cut short is never a whole one", Scenario{
			Fault: Fault{Do: cutBody}, Expect: fails(sdk.Corrupt),
		}),
		get("other bytes than the stored ones do not pass where the store attests them", Scenario{
			Dialects: []Dialect{GCS}, Fault: Fault{Do: otherBytes}, Expect: fails(sdk.Corrupt),
		}),
		get("a body that trickles holds nobody whose context has ended", Scenario{
			Fault: Fault{Do: trickle}, GivesUp: true, Expect: fails(sdk.Cancelled),
		}),
	}
}

func listScenarios() []Scenario {
	list := func(name string, s Scenario) Scenario {
		s.Name, s.Call, s.Fault.On = name, List, List
		return s
	}
	return []Scenario{
		list("a 200 with an error in it is not an empty listing", Scenario{
			Fault: Fault{Do: answerOK, what: internalError}, Expect: fails(sdk.Unavailable),
		}),
		list("a page that says more follows and not where is not the end of a listing", Scenario{
			Dialects: []Dialect{S3}, Page: 2, Fault: Fault{Do: noToken, Times: 1}, Expect: fails(sdk.Corrupt),
		}),
		list("an error on the second page ends the listing as an error", Scenario{
			Page: 2, Fault: Fault{Do: answer, what: internalError, After: 1}, Expect: Expect{Err: sdk.Unavailable, Requests: 2},
		}),
		list("a connection that breaks on the second page ends the listing as an error", Scenario{
			Page: 2, Fault: Fault{Do: dropReply, After: 1}, Expect: Expect{Err: sdk.Unavailable, Requests: 2},
		}),
		list("pages of two are one listing", Scenario{Page: 2, Expect: Expect{Requests: 3}}),
	}
}

func deleteScenarios() []Scenario {
	del := func(name string, s Scenario) Scenario {
		s.Name, s.Call, s.Fault.On = name, Delete, Delete
		return s
	}
	return []Scenario{
		del("a 200 with an error in it is not a success: delete", Scenario{
			Fault: Fault{Do: answerOK, what: internalError}, Expect: fails(sdk.Unavailable),
		}),
		del("a key that could not be deleted is named, in a reply that is otherwise a success", Scenario{
			Fault: Fault{Do: refuseKeys, what: accessDenied}, Expect: fails(sdk.PermissionDenied),
		}),
		del("a missing key is deleted", Scenario{Fault: Fault{Do: refuseKeys, what: noSuchKey}, Expect: Expect{Requests: 1}}),
	}
}
