package testaddr

import (
	"net"
	"testing"
)

func TestAnAddressIsNotGivenTwiceWhileItIsHeldAndMayBeListenedOnAgainAndAgain(t *testing.T) {
	given := map[string]bool{}
	for range 300 {
		address, err := Reserve(t.Cleanup)
		if err != nil {
			t.Fatal(err)
		}
		if given[address] {
			t.Errorf("%s is given twice", address)
		}
		given[address] = true
		for range 2 {
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAnAddressIsFreeAgainAtTheEnd(t *testing.T) {
	var ends []func()
	address, err := Reserve(func(end func()) { ends = append(ends, end) })
	if err != nil {
		t.Fatal(err)
	}
	if err := try(address, t.Cleanup); err == nil {
		t.Errorf("%s is given though it is held", address)
	}
	for _, end := range ends {
		end()
	}
	if err := try(address, t.Cleanup); err != nil {
		t.Error(err)
	}
}
