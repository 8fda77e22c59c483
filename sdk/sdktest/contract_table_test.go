package sdktest_test

// contract is the table: each sentence of the binding declarations, verbatim, and the cases that fail for a plugin that breaks it.
func contract() []bound {
	const (
		definition = "a definition: it asks nothing of a plugin"
		rude       = "only a store that fails on request can show it: the plugins' tests against internal/rudestore"
	)
	return []bound{
		{sentence: "Plugin is what a plugin's main hands to rpc.Serve.", instead: definition},
		{sentence: "C is its configuration: a struct with cairn tags, see SchemaOf.", instead: "rpc.Serve refuses to start with another: sdk's own tests"},
		{
			sentence: `as in plugin = "NAME"`,
			cases: []string{
				"a description has a name, a semantic version and a schema that the host can use",
			},
		},
		{
			sentence: "semver of the plugin",
			cases: []string{
				"a description has a name, a semantic version and a schema that the host can use",
			},
		},
		{sentence: "what it stores where, in a sentence", instead: "for people"},
		{
			sentence: "Validate checks cfg without network; each problem is an *Error with Code InvalidConfig and Attribute.",
			cases: []string{
				"Validate works before Configure, takes the configuration that works, and touches nothing",
				"an attribute that the schema does not know is InvalidConfig and named",
				"a value of another type than the schema's is InvalidConfig and named, and is not repeated",
				"a required attribute that is missing is InvalidConfig and named",
				"a value outside an enum is InvalidConfig and named",
			},
		},
		{sentence: "Several are joined.", instead: "the exam cannot know two values that a plugin of its own refuses: sdk's tests of Decode, rpc's of Validate"},
		{sentence: "Optional.", instead: definition},
		{
			sentence: "Open makes a Target.",
			cases: []string{
				"Configure makes the target once; a second one is refused and harms nothing",
			},
		},
		{
			sentence: "It does no network I/O: a store that is down must not keep the plugin from starting.",
			cases: []string{
				"Open does no network I/O: it works while the store is away, and then the calls say Unavailable",
			},
		},
		{sentence: "ctx lives as long as the Target; a Target that is also an io.Closer is closed when the plugin ends.", instead: "binds the SDK: sdk/rpc's tests"},
		{sentence: "Env is what the host gives a Target besides its configuration.", instead: definition},
		{sentence: "its name in the configuration", instead: definition},
		{
			sentence: "goes to the host's log; never write a secret to it",
			cases: []string{
				"a secret of the configuration is in nothing that the plugin writes or answers",
			},
		},
		{sentence: "not classified: retried, counted as the plugin's defect", instead: "what a plugin says when it says nothing; every case that wants a code fails for it"},
		{
			sentence: "the object is proven absent",
			cases: []string{
				"Get of a key that was never stored answers NotFound",
			},
		},
		{
			sentence: "a Put with IfAbsent met an object",
			cases: []string{
				"Put with IfAbsent of an existing key fails with Exists and changes nothing",
			},
		},
		{sentence: "the store knows who asks and refuses; says nothing about whether the object exists", instead: rude},
		{sentence: "the store does not accept the credentials", instead: rude},
		{
			sentence: "the configuration cannot work; Error.Attribute says where",
			cases: []string{
				"an attribute that the schema does not know is InvalidConfig and named",
			},
		},
		{sentence: "the store asks for fewer requests: retried more slowly", instead: rude},
		{
			sentence: "the store cannot be reached or does not answer now: retried",
			cases: []string{
				"Open does no network I/O: it works while the store is away, and then the calls say Unavailable",
			},
		},
		{sentence: "the store is full", instead: rude},
		{
			sentence: "bytes are missing, too many, or not those that were declared",
			cases: []string{
				"a body whose digest does not agree is never stored",
				"a range that begins after the last byte is Corrupt",
			},
		},
		{
			sentence: "the caller gave up",
			cases: []string{
				"a call whose context has ended fails as Cancelled and changes nothing",
			},
		},
		{
			sentence: "the store cannot do this at all, or the request breaks the contract",
			cases: []string{
				"a call before Configure is refused and harms nothing",
			},
		},
		{sentence: "made by the host only: the process or its connection ended", instead: "binds the host: core/pluginhost's tests"},
		{sentence: "made by the host only: the process lives and says nothing", instead: "binds the host: core/pluginhost's tests"},
		{sentence: "Error is a failure with everything the host acts on and a person reads.", instead: definition},
		{
			sentence: "It crosses the wire whole.",
			cases: []string{
				"an error crosses the wire with its code, what was done to what, and a text that can be shown",
			},
		},
		{sentence: "A method may return one, wrap one, or return any other error: the SDK sends what CodeOf finds.", instead: "binds the SDK: sdk's tests of CodeOf"},
		{
			sentence: `what was done to what, such as "put" and "pack/…"`,
			cases: []string{
				"an error crosses the wire with its code, what was done to what, and a text that can be shown",
			},
		},
		{
			sentence: "path in the config body, for InvalidConfig",
			cases: []string{
				"an attribute that the schema does not know is InvalidConfig and named",
			},
		},
		{sentence: "the store's own code and request id", instead: rude},
		{sentence: "what an operator can do", instead: "for people"},
		{sentence: "0 = by the host's backoff", instead: rude},
		{sentence: "the cause; text only on the far side", instead: "binds the SDK: sdk/rpc's tests of errors"},
		{
			sentence: "Target is one configured store.",
			cases: []string{
				"a second process with the same configuration works beside the first",
			},
		},
		{
			sentence: "The store may be open in several processes at once, such as two hosts': a Target holds no lock on it between calls.",
			cases: []string{
				"a second process with the same configuration works beside the first",
			},
		},
		{
			sentence: "All methods are called concurrently and return soon after ctx ends.",
			cases: []string{
				"Puts at the same time do not mix",
				"Gets of one object at the same time each yield all of it",
				"64 Puts at the same time each store their own object",
				"a listing that runs beside Puts and Deletes holds every object that was there all along, once and in order",
				"a call returns soon after its context has ended",
				"a call whose context has ended fails as Cancelled and changes nothing",
				"calls that the host cancels have ended in the plugin soon",
			},
		},
		{
			sentence: "A method does not retry: the host does, with the same arguments.",
			cases: []string{
				"the same Put may come again",
				"Delete of a missing key is success",
			},
		},
		{sentence: "The vendor client's own retries are off.", instead: rude},
		{
			sentence: "Failures are told by code: see Code for which means what; an error without one is Internal, the plugin's defect.",
			cases: []string{
				"Get of a key that was never stored answers NotFound",
				"a range that begins after the last byte is Corrupt",
				"Put with IfAbsent of an existing key fails with Exists and changes nothing",
			},
		},
		{sentence: "The SDK has checked the arguments before a method sees them: keys by CheckKey, prefixes by CheckPrefix, ranges by CheckGet, sizes and counts by the limits below.", instead: "binds the SDK, and the host for other languages: sdk's tests of Guard"},
		{
			sentence: "Put stores one object, whole or not at all.",
			cases: []string{
				"Put stores an object that Get reads back byte for byte, whatever its size",
				"an object of MaxObject bytes is stored and read back byte for byte",
				"sizes around the usual limits of stores make no difference",
				"a Put that fails leaves the old object as it was",
				"a Put that is cancelled on its way stores the complete object or nothing",
				"a large Put that is cancelled on its way stores the complete object or nothing",
				"kill -9 during Puts leaves whole objects or none, and none that was stored is lost",
			},
		},
		{
			sentence: "A reader sees the old state or the complete object, never a part.",
			cases: []string{
				"a reader sees the old state or the complete object, never a part",
				"an object that is replaced while it is read is never a mix of the old and the new",
				"a large object that is replaced is never seen in part",
				"a deleted object is neither read nor listed",
				"a listing shows an object that was replaced once, and as it is now",
			},
		},
		{
			sentence: "With IfAbsent, exactly one of any number of concurrent Puts of a key succeeds; the others fail with Exists, and so does any later one.",
			cases: []string{
				"Put with IfAbsent stores an object under an absent key",
				"Put with IfAbsent of an existing key fails with Exists and changes nothing",
				"of any number of concurrent Puts with IfAbsent exactly one succeeds, and its object is what is stored",
				"the same holds between two instances of a target",
				"the same holds for objects that do not travel inside a call",
				"a key that another instance has created is taken",
				"a key that was deleted can be created again",
				"a failed Put with IfAbsent does not take the key",
				"kill -9 during Puts with IfAbsent leaves each key whole or free",
			},
		},
		{
			sentence: "Without it, Put of an existing key replaces it.",
			cases: []string{
				"Put of an existing key without IfAbsent replaces it",
				"an object that was created can be replaced without IfAbsent",
				"a deleted key can be stored again",
			},
		},
		{
			sentence: "When Put returns nil the object survives a crash of the store.",
			cases: []string{
				"an object whose Put returned nil is there after a restart",
				"an object whose Put returned is there after kill -9",
			},
		},
		{sentence: "After a cancelled or failed Put the object may exist or not; the host reads it back.", instead: "binds the host: core/syncer's tests"},
		{
			sentence: "A body that turns out damaged while it is read (BodyReader answers Corrupt) is never stored.",
			cases: []string{
				"a body whose digest does not agree is never stored",
				"a body that ends early is never stored",
				"a body whose file ends early is never stored",
				"a large body that is damaged at its very end is never stored",
				"a Put that fails leaves the old object as it was",
			},
		},
		{
			sentence: "Get opens an object or a range of it; NotFound when the key is proven absent (a 403 is PermissionDenied).",
			cases: []string{
				"Get of a key that was never stored answers NotFound",
				"Get does not take the beginning of a key for an object",
				"a range is exactly the bytes asked for",
				"ranges of one large object can be read at the same time",
			},
		},
		{
			sentence: "A range that reaches past the end yields what there is; one that begins after the last byte is Corrupt.",
			cases: []string{
				"a range that reaches past the end yields what there is",
				"a range that begins after the last byte is Corrupt",
			},
		},
		{
			sentence: "The caller closes GetResult.Body.",
			cases: []string{
				"a body may be closed before its end",
			},
		},
		{
			sentence: "The SDK compares what Body yields with Size: fewer or more bytes are Corrupt.",
			cases: []string{
				"Size is the number of bytes that Body yields",
			},
		},
		{
			sentence: "List yields the objects whose key starts with Prefix and is greater than StartAfter, strictly ascending by key bytes, including every object whose Put returned before List was called.",
			cases: []string{
				"List yields exactly the objects whose key starts with Prefix",
				"List yields keys strictly ascending by their bytes",
				"List begins after StartAfter",
				"List yields every object whose Put returned before",
				"a listing of thousands of keys is complete and ascending, from its beginning and from any key on",
				"a listing that runs beside Puts and Deletes holds every object that was there all along, once and in order",
			},
		},
		{
			sentence: "Any trouble is yielded as an error and ends the listing: a listing without an error is complete.",
			cases: []string{
				"List is complete, however many pages it takes",
				"a listing whose context ends on its way is complete or ends in an error",
				"List may be stopped at any object",
			},
		},
		{
			sentence: "No object is no error.",
			cases: []string{
				"List of nothing is empty and no error",
			},
		},
		{sentence: "An object of someone else whose key CheckKey refuses may be left out.", instead: "a permission; the exam has no way to store such an object"},
		{
			sentence: "Delete removes up to MaxDelete keys, exactly those: nothing below or beside them.",
			cases: []string{
				"a deleted object is neither read nor listed",
				"Delete takes MaxDelete keys, there or not",
				"Delete takes MaxDelete keys of which half are missing",
				"Delete removes exactly the keys it names, nothing below or beside them",
			},
		},
		{
			sentence: "A missing key is success.",
			cases: []string{
				"Delete of a missing key is success",
				"Delete takes MaxDelete keys of which half are missing",
			},
		},
		{sentence: "Failures are joined, each an *Error with Key; the other keys are gone all the same.", instead: "only a store can refuse one key of many: the plugins' tests against internal/rudestore, and sdk/rpc's of the wire"},
		{
			sentence: `bytes; [A-Za-z0-9._/-], no empty, "." or ".." segment, no leading or trailing "/"`,
			cases: []string{
				"Put takes keys of every allowed byte and of the greatest length",
			},
		},
		{
			sentence: "bytes; the host never sends a larger object, so no plugin needs multipart",
			cases: []string{
				"an object of MaxObject bytes is stored and read back byte for byte",
			},
		},
		{
			sentence: "keys in one Delete",
			cases: []string{
				"Delete takes MaxDelete keys, there or not",
			},
		},
		{
			sentence: "bytes of a body that travel inside the RPC",
			cases: []string{
				"Put stores an object that Get reads back byte for byte, whatever its size",
				"a body is a range of a spool file: nothing before or behind it is stored",
			},
		},
		{
			sentence: "MaxSegment bounds one part of a key between slashes, in bytes: a file system holds 255 in a name, and a store that keeps objects as files needs room for a suffix of its own.",
			cases: []string{
				"Put takes keys of every allowed byte and of the greatest length",
			},
		},
		{
			sentence: "Class tells a store with several storage classes what an object is for.",
			cases: []string{
				"Put stores objects of both classes",
			},
		},
		{sentence: "small, read at every start: always the hot class", instead: rude},
		{sentence: "packs: the class the operator chose", instead: rude},
		{sentence: "PutRequest is one object to store.", instead: definition},
		{sentence: "PutResult is what the store says of an object it stored.", instead: definition},
		{
			sentence: "the store's own name for what it stored (ETag, generation), for logs; may be empty",
			cases: []string{
				"a version that Put answers is a name for this content, in printable text",
			},
		},
		{
			sentence: "only when the store itself attests it, else zero",
			cases: []string{
				"a digest that Put answers is that of the content",
			},
		},
		{sentence: "GetRequest names an object or a range of one.", instead: definition},
		{
			sentence: "-1 = to the end; never 0; with Offset 0 and Length -1 no range is asked of the store",
			cases: []string{
				"a range is exactly the bytes asked for",
				"Put stores an object that Get reads back byte for byte, whatever its size",
			},
		},
		{sentence: "GetResult is an open object.", instead: definition},
		{
			sentence: "bytes that Body will yield, as the store declares it",
			cases: []string{
				"Size is the number of bytes that Body yields",
			},
		},
		{sentence: "ListRequest asks for the keys below a prefix.", instead: definition},
		{
			sentence: "a hint for the page size; 0 = none",
			cases: []string{
				"Limit is a hint and hides nothing",
			},
		},
		{
			sentence: "Object is one row of a listing.",
			cases: []string{
				"List tells the size of each object and when it was modified",
			},
		},
		{
			sentence: "by the store's clock",
			cases: []string{
				"List tells the size of each object and when it was modified",
			},
		},
	}
}
