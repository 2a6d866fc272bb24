package mcptool

import (
	"errors"
	"testing"
)

// TestABundleIsReadWhileOthersAskAndKeptOnce: parsing takes a while, and every worker asks the memory.
func TestABundleIsReadWhileOthersAskAndKeptOnce(t *testing.T) {
	t.Parallel()
	m := newMemory()
	mine, others := &authorities{identity: "mine"}, &authorities{identity: "of another worker"}
	got, err := m.bundle("1", func() (*authorities, error) {
		if !m.mu.TryLock() {
			return nil, errors.New("nobody else can ask")
		}
		m.mu.Unlock()
		if _, err := m.bundle("1", func() (*authorities, error) { return others, nil }); err != nil {
			return nil, err
		}
		return mine, nil
	})
	if err != nil || got != others {
		t.Errorf("%+v, %v; want what another worker has already", got, err)
	}
	if again, err := m.bundle("1", func() (*authorities, error) { return nil, errors.New("it was read again") }); err != nil || again != others {
		t.Errorf("again: %+v, %v", again, err)
	}
}
