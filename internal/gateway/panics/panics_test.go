package panics

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recorded is a Recorder, and what it counted and logged.
func recorded() (*Recorder, map[string]int, *strings.Builder) {
	counts, log := map[string]int{}, &strings.Builder{}
	return New(slog.New(slog.NewTextHandler(log, nil)), func(backend string) { counts[backend]++ }), counts, log
}

func fails(r *Recorder, backend string, what any) (err error) {
	defer r.Catch(backend, &err)
	panic(what)
}

func TestAPanicIsAnErrorCountedAlwaysAndLoggedOnceForEachBackend(t *testing.T) {
	r, counts, log := recorded()
	for range 3 {
		for _, backend := range []string{"docs", "web"} {
			if err := fails(r, backend, "its own words "+strings.Repeat("x", 1000)); !errors.Is(err, Err) || strings.Contains(err.Error(), "words") {
				t.Errorf("it became %v", err)
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"docs": 3, "web": 3}, counts); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 2 || strings.Count(log.String(), "panics.fails") < 2 {
		t.Errorf("%d lines were logged: %s", n, log)
	}
	if strings.Contains(log.String(), strings.Repeat("x", maxWords)) {
		t.Errorf("all of its words were logged: %s", log)
	}
}

func TestTheStacksThatAreRememberedAreBounded(t *testing.T) {
	r, counts, log := recorded()
	for i := range 2 * maxPlaces {
		_ = fails(r, strings.Repeat("x", i+1), "oh")
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != maxPlaces || len(counts) != 2*maxPlaces {
		t.Errorf("%d were logged and %d counted", n, len(counts))
	}
}

func TestWhatIsNoFaultIsLeftAlone(t *testing.T) {
	r, counts, _ := recorded()
	own := errors.New("an error of its own")
	got := func() (err error) {
		defer r.Catch("docs", &err)
		return own
	}()
	if !errors.Is(got, own) {
		t.Errorf("the error became %v", got)
	}
	func() {
		defer func() {
			if what := recover(); what != http.ErrAbortHandler { //nolint:errorlint // net/http compares so too
				t.Errorf("the end of a half answer became %v", what)
			}
		}()
		defer r.Catch("docs", nil)
		panic(http.ErrAbortHandler)
	}()
	if len(counts) != 0 {
		t.Errorf("counted %v", counts)
	}
	if err := fails(nil, "docs", "nobody was told to record"); !errors.Is(err, Err) {
		t.Errorf("without a recorder: %v", err)
	}
}
