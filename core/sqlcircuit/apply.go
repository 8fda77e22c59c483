package sqlcircuit

import (
	"errors"
	"fmt"

	"modernc.org/libc"
)

// applyStmt is one prepared statement of an input; the numbers are those of its parameters, 0 = it has none of that name.
type applyStmt struct {
	*stmt
	record, input, position int32
}

func prepareApply(c *conn, text string) (applyStmt, error) {
	s, err := c.prepareOne(text)
	if err != nil {
		return applyStmt{}, err
	}
	a := applyStmt{stmt: s}
	for i, name := range s.parameters() {
		switch name {
		case ":record":
			a.record = int32(i + 1)
		case ":input":
			a.input = int32(i + 1)
		case ":position":
			a.position = int32(i + 1)
		}
	}
	return a, nil
}

// transactionLost says that a statement rolled the whole transaction back (RAISE(ROLLBACK), OR ROLLBACK): everything before the record
// is gone and must be applied again, without it.
type transactionLost struct {
	item   *item
	reason string
}

func (t *transactionLost) Error() string { return "a statement rolled the step back: " + t.reason }

// applyRecord runs the input's statements on one record, all or none. A refusal is the record's fault; an error ends the step.
func (c *Circuit) applyRecord(in *input, it *item, prefix string) (refusal string, err error) {
	if it.refusal != "" {
		return it.refusal, nil
	}
	if err := c.own.openRecord.run(); err != nil {
		return "", err
	}
	err = c.runStatements(in, it, prefix)
	if err == nil {
		return "", c.own.closeRecord.run()
	}
	if !refuses(err) {
		return "", fmt.Errorf("input %s: apply record %s: %w", in.cfg.Name, it.where(prefix), err)
	}
	if c.writer.autocommit() {
		return "", &transactionLost{item: it, reason: err.Error()}
	}
	return err.Error(), errors.Join(c.own.undoRecord.run(), c.own.closeRecord.run())
}

func (c *Circuit) runStatements(in *input, it *item, prefix string) error {
	tls := c.writer.tls
	record, err := libc.CString(it.text)
	if err != nil {
		return err
	}
	defer libc.Xfree(tls, record)
	for _, s := range in.statements {
		if err := s.bindStatic(s.record, record, len(it.text)); err != nil {
			return err
		}
		if s.input != 0 {
			if err := s.bindCopy(s.input, in.cfg.Name, false); err != nil {
				return err
			}
		}
		if s.position != 0 {
			if err := s.bindCopy(s.position, it.position(prefix), false); err != nil {
				return err
			}
		}
		if err := s.run(); err != nil {
			return err
		}
	}
	return nil
}
