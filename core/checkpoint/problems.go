package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// maxProblems is how many faults one error names: enough to see the pattern, short enough for a log line.
const maxProblems = 10

// problems gathers faults from several goroutines.
type problems struct {
	mu    sync.Mutex
	errs  []error
	total int
}

func (p *problems) add(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total++
	if len(p.errs) < maxProblems {
		p.errs = append(p.errs, err)
	}
}

func (p *problems) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := slices.Clone(p.errs)
	if more := p.total - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}
