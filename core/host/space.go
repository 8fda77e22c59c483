package host

import (
	"errors"
	"fmt"

	"github.com/cairnsync/cairn/core/checkpoint"
	"github.com/cairnsync/cairn/core/circuit"
	"github.com/cairnsync/cairn/sdk"
)

// outOfSpace gives the error of a start the remedy for a full disk when that is what it comes from; the spool and a store have named theirs. What
// was downloaded until then stays: the next start goes on with it.
func (p *pipeline) outOfSpace(err error) error {
	told := errors.Is(err, sdk.NoSpace) || errors.Is(err, circuit.ErrNoSpace)
	if !told {
		err = checkpoint.Explain(p.cfg.Backend.Path, err)
		_, told = errors.AsType[*checkpoint.FullError](err)
	}
	if told {
		return fmt.Errorf("%w; then start the pipeline again, it goes on from what is there", err)
	}
	return err
}
