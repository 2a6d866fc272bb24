package fault

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
)

// record makes our recorder write into what is returned, until the test ends.
func record(t *testing.T) *strings.Builder {
	t.Helper()
	log, before := &strings.Builder{}, ours.log
	ours.log, ours.told = funcr.New(func(_, line string) { log.WriteString(line + "\n") }, funcr.Options{}), nil
	t.Cleanup(func() { ours.log, ours.told = before, nil })
	return log
}

func fails(what any) (err error) {
	defer Catch("team/demo", &err)
	panic(what)
}

func TestAPanicIsAnErrorAndItsStackIsLoggedOnceForEachPlace(t *testing.T) {
	log := record(t)
	elsewhere := func() (err error) {
		defer Catch("team/demo", &err)
		panic(errors.New("an error"))
	}
	for range 3 {
		for name, err := range map[string]error{"one place": fails("its own words " + strings.Repeat("x", 1000)), "another": elsewhere()} {
			if !errors.Is(err, Err) || strings.Contains(err.Error(), "words") {
				t.Errorf("%s: it became %v", name, err)
			}
		}
	}
	lines := strings.Count(log.String(), "\n")
	if lines != 2 || !strings.Contains(log.String(), `"about"="team/demo"`) || !strings.Contains(log.String(), "fault.fails") {
		t.Errorf("%d lines were logged: %s", lines, log)
	}
	if strings.Contains(log.String(), strings.Repeat("x", maxWords)) {
		t.Errorf("all of its words were logged: %s", log)
	}
}

func TestThePlacesThatAreRememberedAreBounded(t *testing.T) {
	log := record(t)
	ours.told = map[place]bool{}
	for i := range maxPlaces {
		ours.told[place{uintptr(i + 1)}] = true
	}
	if err := fails("oh"); !errors.Is(err, Err) || log.Len() != 0 || len(ours.told) != maxPlaces {
		t.Errorf("%v; %d places; logged: %s", err, len(ours.told), log)
	}
}

func TestWhatIsNoPanicIsLeftAlone(t *testing.T) {
	log := record(t)
	own := errors.New("an error of its own")
	for _, want := range []error{nil, own} {
		got := func() (err error) {
			defer Catch("team/demo", &err)
			return want
		}()
		if !errors.Is(got, want) || log.Len() != 0 {
			t.Errorf("%v became %v; logged: %s", fmt.Sprint(want), got, log)
		}
	}
}
