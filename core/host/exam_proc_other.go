//go:build !linux

package host

import "errors"

func connectionsOf(int) ([]string, error) { return nil, errors.ErrUnsupported }

func peakMemoryOf(int) int64 { return 0 }
