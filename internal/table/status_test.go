package table

import (
	"encoding/json"
	"testing"
)

func TestADigestThatIsNotKnownIsLeftOut(t *testing.T) {
	for want, tool := range map[string]ToolStatus{
		`{"name":"a","original":"a","verdict":"Invalid"}`:                    {Name: "a", Original: "a", Verdict: ToolInvalid},
		`{"name":"a","original":"a","digest":"sha256:0","verdict":"Served"}`: {Name: "a", Original: "a", Digest: "sha256:0", Verdict: ToolServed},
	} {
		if got, err := json.Marshal(tool); err != nil || string(got) != want {
			t.Errorf("got %s, want %s: %v", got, want, err)
		}
	}
}
