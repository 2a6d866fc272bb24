package telemetry

import "testing"

func TestNothingIsExportedIfTheEnvironmentIsIgnored(t *testing.T) {
	c := newCollector(t)
	tel := New(Options{IgnoreEnvironment: true})
	span := tel.Start(CallInfo{Method: "ping", Carrier: Carrier{Traceparent: parent}})
	if got := span.Carrier().Traceparent; got != parent {
		t.Errorf("sent on is %s, not the client's own", got)
	}
	span.End(Outcome{Status: StatusOK})
	if spans := c.closed(t, tel); len(spans) != 0 {
		t.Errorf("%d spans were exported", len(spans))
	}
}
