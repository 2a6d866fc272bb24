package reach

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestDocumentsAreKeptAShortWhileAndWithinALimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r recent
		of := func(name string) Document {
			return Document{Subject: Subject{UID: types.UID(name)}, URL: "https://" + name + ".example.com/"}
		}
		put := func(name string, size int) {
			r.put(copied{document: of(name), content: make([]byte, size), at: time.Now()})
		}
		kept := func(d Document) bool {
			_, ok := r.get(d, time.Minute)
			return ok
		}
		put("large", maxRecent/8+1)
		put("a", 10)
		put("a", maxRecent/8)
		elsewhere, otherwise := of("a"), of("a")
		elsewhere.URL, otherwise.Purpose = "https://b.example.com/", "else"
		if kept(of("large")) || !kept(of("a")) || kept(elsewhere) || !kept(otherwise) || r.known.Bytes() != maxRecent/8 {
			t.Errorf("%d bytes are kept of %v", r.known.Bytes(), r.known.Keys())
		}
		<-time.After(50 * time.Second)
		r.confirm("a", "", "")
		r.confirm("large", "", "")
		<-time.After(50 * time.Second)
		if !kept(of("a")) {
			t.Error("what was confirmed is not kept")
		}
		<-time.After(10 * time.Second)
		if kept(of("a")) {
			t.Error("it is kept too long")
		}
		for _, name := range []string{"b", "c", "d", "e", "f", "g", "h", "i"} {
			put(name, maxRecent/8)
		}
		if diff := cmp.Diff([]types.UID{"b", "c", "d", "e", "f", "g", "h", "i"}, r.known.Keys()); diff != "" || r.known.Bytes() != maxRecent {
			t.Errorf("%d bytes are kept (-want +got)\n%s", r.known.Bytes(), diff)
		}
	})
}
