package gateway

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestWhatTheStartNeededIsGivenBack(t *testing.T) {
	before := mapped(t)
	if err := trim(); err != nil {
		t.Fatal(err)
	}
	after := mapped(t)
	t.Logf("%d kB of files were mapped, %d kB are", before, after)
	if after >= before/2 {
		t.Errorf("%d kB of files are mapped after trimming, %d kB before", after, before)
	}
}

// mapped is what the process has resident of files, in kB.
func mapped(t *testing.T) (kB int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscanf(rest, "%d kB", &kB); err != nil {
		t.Fatal(err)
	}
	return kB
}
