package bench

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

const (
	// rounds is how often each subject is measured, in turn with those it is compared to.
	rounds = 5
	// span is how long one measurement takes.
	span = 350 * time.Millisecond
)

// subject is a process that is measured, and its clients.
type subject struct {
	name    string
	pid     int
	clients []*client

	rates []float64
	took  []time.Duration
	cpu   time.Duration
}

func newSubject(b *testing.B, name, endpoint string, pid, clients int, version, text string, headers ...string) *subject {
	b.Helper()
	s := &subject{name: name, pid: pid}
	for range clients {
		s.clients = append(s.clients, connect(b, endpoint, version, text, headers...))
	}
	return s
}

// measure has all clients call at once, each again as soon as it is answered.
func (s *subject) measure(b *testing.B) {
	b.Helper()
	took := make([][]time.Duration, len(s.clients))
	var wg sync.WaitGroup
	before, begun := cpu(b, s.pid), time.Now()
	for i, c := range s.clients {
		wg.Go(func() {
			for last := begun; last.Sub(begun) < span; {
				if err := c.once(); err != nil {
					b.Errorf("%s: %v", s.name, err)
					return
				}
				now := time.Now()
				took[i], last = append(took[i], now.Sub(last)), now
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(begun)
	s.cpu += cpu(b, s.pid) - before
	calls := 0
	for _, t := range took {
		s.took = append(s.took, t...)
		calls += len(t)
	}
	s.rates = append(s.rates, float64(calls)/elapsed.Seconds())
}

// warm measures for nothing: code is compiled and memory grows while a process is new to what it does.
func (s *subject) warm(b *testing.B, times int) {
	b.Helper()
	for range times {
		s.measure(b)
	}
	s.rates, s.took, s.cpu = nil, nil, 0
}

// measure measures the subjects in turn, and ends their clients.
func measure(b *testing.B, subjects ...*subject) {
	b.Helper()
	for _, s := range subjects {
		s.warm(b, 1)
	}
	for range rounds {
		for _, s := range subjects {
			s.measure(b)
		}
	}
	for _, s := range subjects {
		for _, c := range s.clients {
			_ = c.Close()
		}
	}
}

// rate is the median of the rounds', in calls per second.
func (s *subject) rate() float64 { return at(s.rates, 0.5) }

func at[T ~int64 | ~float64](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}

// report prints what was measured, as a table.
type report struct{ *tabwriter.Writer }

func newReport(title string) report {
	t := report{tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)}
	fmt.Fprintf(os.Stdout, "\n%s (load average %s)\n", title, strings.Fields(contentOf("/proc/loadavg"))[0])
	t.row("version", "text", "clients", "through", "calls/s", "rounds", "p50 ms", "p99 ms", "CPU µs/call", "RSS MiB")
	return t
}

func (t report) row(cells ...string) { fmt.Fprintln(t, strings.Join(cells, "\t")+"\t") }

func (t report) subject(b *testing.B, version, text string, s *subject) {
	b.Helper()
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f", float64(d)/1e6) }
	t.row(version, text, strconv.Itoa(len(s.clients)), s.name, fmt.Sprintf("%.0f", s.rate()),
		fmt.Sprintf("%.0f to %.0f", slices.Min(s.rates), slices.Max(s.rates)), ms(at(s.took, 0.5)), ms(at(s.took, 0.99)),
		fmt.Sprintf("%.0f", float64(s.cpu.Microseconds())/float64(len(s.took))), fmt.Sprintf("%.0f", resident(b, s.pid)/1024))
}

// cpu is the time that a process has had of the processors. It is counted in hundredths of a second.
func cpu(tb testing.TB, pid int) time.Duration {
	tb.Helper()
	stat := contentOf(fmt.Sprintf("/proc/%d/stat", pid))
	// After the name, which may hold anything: utime and stime are the twelfth and thirteenth, see proc_pid_stat(5).
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	if len(fields) < 13 {
		tb.Fatalf("/proc/%d/stat: %q is not as Linux writes it", pid, stat)
	}
	return time.Duration(number(tb, fields[11])+number(tb, fields[12])) * 10 * time.Millisecond
}

// resident is the memory of a process that is in RAM, in KiB.
func resident(tb testing.TB, pid int) float64 {
	tb.Helper()
	_, rest, _ := strings.Cut(contentOf(fmt.Sprintf("/proc/%d/status", pid)), "VmRSS:")
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	return number(tb, kib)
}

func number(tb testing.TB, text string) float64 {
	tb.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// contentOf is the text of a file, none if it cannot be read.
func contentOf(path string) string {
	content, _ := os.ReadFile(path)
	return string(content)
}
