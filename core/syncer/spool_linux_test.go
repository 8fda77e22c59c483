package syncer

import (
	"errors"
	"os"
	"testing"

	"github.com/cairnsync/cairn/sdk"
)

func TestAReallyFullDeviceIsNoSpace(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if _, err := (&SpoolFile{File: full}).Write([]byte("x")); !errors.Is(err, sdk.NoSpace) {
		t.Errorf("error %v", err)
	}
}
