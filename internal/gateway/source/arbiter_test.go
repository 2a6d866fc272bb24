package source

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTheNewerOfFileAndAPIServerWins(t *testing.T) {
	// Each step is who says what, such as "file a"; "+" before it if that is to be delivered. "lost" and "back" are the API
	// server's; a number passes that many seconds.
	for name, steps := range map[string][]any{
		"the file at the start, the API server when it has something else": {"+file a", "file a", "api a", "+api b"},
		"the file lags behind":                               {"+file a", "+api b", "file a", "file a", "file b", "+api c", "file b"},
		"a change back":                                      {"+file a", "+api b", "file a", "+api a", "file b", "+api c"},
		"the file alone, with the API server away":           {"+file a", "lost", "+file b", "+file a"},
		"a lost watch keeps the file out for a minute":       {"+file a", "api a", "lost", 60, "file b", 1, "+file b", "+file c"},
		"a watch that came back does so again":               {"+file a", "api a", "lost", 61, "back", "file b", "lost", 60, "file b", 1, "+file b"},
		"the minute counts from the first failure":           {"+file a", "api a", "lost", 40, "lost", 21, "+file b"},
		"what the API server replaced never comes back":      {"+file a", "+api b", "+api c", "lost", 300, "file a", "file b", "file c"},
		"nor what the file showed when the API server spoke": {"+file a", "+api b", "file x", "+api c", "lost", 300, "file x", "+file d"},
		"a file that caught up may go back":                  {"+file a", "+api b", "file b", "lost", 61, "+file a"},
		"a file that is ahead, then the API server":          {"+file a", "+api b", "lost", 61, "+file c", "api c", "+api d"},
		"no file": {"+api a", "api a", "+api b", "+api a"},
	} {
		t.Run(name, func(t *testing.T) {
			var a arbiter
			now := time.Unix(0, 0)
			for i, step := range steps {
				seconds, pause := step.(int)
				if pause {
					now = now.Add(time.Duration(seconds) * time.Second)
					continue
				}
				text, _ := step.(string)
				text, want := strings.CutPrefix(text, "+")
				got := false
				switch who, id, _ := strings.Cut(text, " "); who {
				case "file":
					got = a.fromFile(contentID(id), now)
				case "api":
					got = a.fromAPI(contentID(id))
				case "lost":
					a.apiLost(now)
				case "back":
					a.apiBack()
				}
				if got != want {
					t.Fatalf("step %d (%s): delivered is %v", i, text, got)
				}
			}
		})
	}
}

func TestTheDelayDoublesAndIsSpread(t *testing.T) {
	var low, high []time.Duration
	for failures := range 10 {
		low, high = append(low, delay(failures, 0)), append(high, delay(failures, 1))
	}
	const ms = time.Millisecond
	want := []time.Duration{250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 15000 * ms, 15000 * ms, 15000 * ms, 15000 * ms}
	if diff := cmp.Diff(want, low); diff != "" {
		t.Errorf("shortest (-want +got):\n%s", diff)
	}
	for i := range want {
		want[i] *= 2
	}
	if diff := cmp.Diff(want, high); diff != "" {
		t.Errorf("longest (-want +got):\n%s", diff)
	}
	if got := delay(1<<30, 1); got != maxDelay {
		t.Errorf("after very many failures: %s", got)
	}
}
