//go:build linux

package process

import (
	"fmt"
	"time"
)

// Wait polls check until it returns nil. It gives up early when one of the named components has
// died, and then shows the end of its log; at the deadline it shows check's last error.
func (t *Table) Wait(what string, patience time.Duration, check func() error, components ...string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		err := check()
		if err == nil {
			return nil
		}
		for _, name := range components {
			how, dead, deadErr := t.dead(name)
			if deadErr != nil {
				return deadErr
			}
			if dead {
				return fmt.Errorf("%s ended (%s) while waiting for %s; its log %s ends:\n%s", name, how, what, t.layout.Log(name), t.LastWords(name))
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s did not come within %s: %w (logs: %s)", what, patience, err, t.layout.Log(""))
		}
	}
}
