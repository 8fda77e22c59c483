package host

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/core/config"
	"github.com/cairnsync/cairn/sdk"
)

func TestAStartOnAFullDiskSaysWhatToDo(t *testing.T) {
	p := &pipeline{cfg: config.Pipeline{Backend: config.Backend{Path: "/data/p"}}}
	const then = "; then start the pipeline again, it goes on from what is there"
	pull := fmt.Errorf("start from pull: %w", &fs.PathError{Op: "write", Path: "/data/p/x", Err: syscall.ENOSPC})
	equal(t, "a pull", p.outOfSpace(pull).Error(), "start from pull: write /data/p/x: no space left on device: the disk of /data/p is full: free some space there"+then)
	open := fmt.Errorf("open circuit: %w", circuit.ErrNoSpace)
	equal(t, "the circuit", p.outOfSpace(open).Error(), "open circuit: no space left on the disk"+then)
	spool := fmt.Errorf("the spool is full: %w", errors.Join(sdk.NoSpace, syscall.ENOSPC))
	equal(t, "the spool", p.outOfSpace(spool).Error(), spool.Error()+then)
	other := errors.New("the target does not answer")
	equal(t, "anything else", p.outOfSpace(other), other)
	equal(t, "no error", p.outOfSpace(nil), nil)
}
