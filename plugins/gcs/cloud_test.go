//go:build cloud

package main

import (
	"context"
	"io"
	"testing"

	"github.com/cairnsync/cairn/internal/teststore"
	"github.com/cairnsync/cairn/sdk"
	"github.com/cairnsync/cairn/sdk/sdktest"
)

func openServer(t *testing.T, server teststore.Server) sdk.Target {
	return sdk.Guard(openTarget(t, Config{Bucket: server.Bucket, Endpoint: server.Endpoint}))
}

// CASES A34, A73
func TestTheGCSTargetPassesTheExamOnARealStore(t *testing.T) {
	server := teststore.GCS(t)
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		return &sdktest.Env{
			Target: openServer(t, server),
			Reopen: func(context.Context) (sdk.Target, error) { return openServer(t, server), nil },
		}
	})
}

func TestTheGCSTargetPassesTheExamOverTheWireOnARealStore(t *testing.T) {
	server := teststore.GCS(t)
	sdktest.Run(t, func(t *testing.T) *sdktest.Env {
		client, spool := sdktest.OverRPC(t, openServer(t, server))
		return &sdktest.Env{
			Target: client, Spool: spool,
			Reopen: func(context.Context) (sdk.Target, error) { return openServer(t, server), nil },
		}
	})
}

func TestARealStoresErrorsAreRead(t *testing.T) {
	server := teststore.GCS(t)
	_, err := openServer(t, server).Get(t.Context(), sdk.GetRequest{Key: "absent", Length: -1})
	wantCode(t, err, sdk.NotFound, "get absent")

	server.Bucket = "nobodys-bucket"
	target := openServer(t, server)
	wantCode(t, put(t, target, "k"), sdk.InvalidConfig, "bucket")
	_, err = keysOf(t.Context(), target)
	wantCode(t, err, sdk.InvalidConfig, "bucket")
}

// CASES A73
func TestRangesAreExactOnARealStore(t *testing.T) {
	target := openServer(t, teststore.GCS(t))
	for key, content := range map[string]string{"ten": "0123456789", "empty": ""} {
		if _, err := target.Put(t.Context(), sdk.PutRequest{Key: key, Body: sdk.BytesBody([]byte(content))}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range ranges() {
		res, err := target.Get(t.Context(), sdk.GetRequest{Key: c.key, Offset: c.off, Length: c.length})
		if c.want == after {
			wantCode(t, err, sdk.Corrupt)
			continue
		}
		if err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		have, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(have) != c.want || res.Size != int64(len(c.want)) {
			t.Errorf("%+v: %q of %d bytes, %v", c, have, res.Size, err)
		}
	}
}

const after = "begins after the end"

type byteRange struct {
	key         string
	off, length int64
	want        string
}

func ranges() []byteRange {
	return []byteRange{
		{"ten", 0, -1, "0123456789"},
		{"ten", 0, 10, "0123456789"},
		{"ten", 0, 1, "0"},
		{"ten", 9, 1, "9"},
		{"ten", 9, -1, "9"},
		{"ten", 8, 100, "89"},
		{"ten", 10, 1, after},
		{"ten", 1000, -1, after},
		{"empty", 0, -1, ""},
		{"empty", 0, 1, after},
		{"empty", 1, -1, after},
	}
}
