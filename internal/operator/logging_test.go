package operator

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

func TestLogLevelsAreThoseOfZap(t *testing.T) {
	t.Parallel()
	tests := map[string]zapcore.Level{
		"debug": zapcore.DebugLevel, "info": zapcore.InfoLevel, "INFO": zapcore.InfoLevel, "error": zapcore.ErrorLevel, "panic": zapcore.PanicLevel,
		"1": -1, "4": -4, "7": -7, "8": -7, "128": -7,
	}
	for name, want := range tests {
		if got, err := parseLevel(name); err != nil || got != want {
			t.Errorf("parseLevel(%q) = %v, %v; want %v", name, got, err, want)
		}
	}
	for _, name := range []string{"", "0", "129", "-1", "warn", "999", "65537", "5abc", "1.5", "3 debug"} {
		if got, err := parseLevel(name); err == nil {
			t.Errorf("parseLevel(%q) = %v, want an error", name, got)
		}
	}
}

// logOf is a logger that is made from a command line, and what it writes.
func logOf(t *testing.T, args ...string) (logr.Logger, uberzap.AtomicLevel, *bytes.Buffer) {
	t.Helper()
	o, err := Parse(args, nil, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	var written bytes.Buffer
	logger, level, err := newLogger(o, zap.WriteTo(&written))
	if err != nil {
		t.Fatal(err)
	}
	return logger, level, &written
}

func TestNoLineOfTheLogIsDroppedForHavingMuchCompany(t *testing.T) {
	t.Parallel()
	logger, level, written := logOf(t)
	for range 1000 {
		logger.Info("audit")
		logger.V(1).Info("not asked for")
	}
	if n := strings.Count(written.String(), "\n"); n != 1000 {
		t.Errorf("of 1000 lines %d are written", n)
	}
	written.Reset()
	level.SetLevel(-5)
	for range 1000 {
		logger.V(5).Info("asked for while running")
		logger.V(6).Info("not asked for")
	}
	if n := strings.Count(written.String(), "\n"); n != 1000 {
		t.Errorf("of 1000 lines of verbosity 5, %d are written", n)
	}
}

func TestTheLogIsWrittenAsTheFlagsSay(t *testing.T) {
	t.Parallel()
	logger, _, written := logOf(t)
	logger.Info("started", "port", 8080)
	var line map[string]any
	if err := json.Unmarshal(written.Bytes(), &line); err != nil || line["msg"] != "started" || line["level"] != "info" {
		t.Errorf("by default the log says %q (%v)", written, err)
	}
	if text, _ := line["ts"].(string); !strings.Contains(text, "T") {
		t.Errorf("by default times are %v", line["ts"])
	}

	logger, _, written = logOf(t, "--zap-time-encoding=epoch", "--zap-stacktrace-level=info")
	logger.Info("started")
	clear(line)
	if err := json.Unmarshal(written.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if _, isNumber := line["ts"].(float64); !isNumber || line["stacktrace"] == nil {
		t.Errorf("the log says %q", written)
	}

	logger, _, written = logOf(t, "--zap-encoder=console")
	logger.Info("started")
	if strings.HasPrefix(written.String(), "{") || !strings.Contains(written.String(), "started") {
		t.Errorf("as text the log says %q", written)
	}
}

func TestTheLevelFollowsTheConfigMapWhereItSaysOne(t *testing.T) {
	t.Parallel()
	logger, level, written := logOf(t, "--log-level=error")
	w := &levelWatcher{source: LogConfigMap{Name: "mcp-operator-config", Namespace: "own", Key: "log-level"}, level: level, log: logger}
	steps := []struct {
		data map[string]string
		want zapcore.Level
		says string
	}{
		{map[string]string{"log-level": "debug"}, zapcore.DebugLevel, `"level":"debug"`},
		{map[string]string{"log-level": "debug"}, zapcore.DebugLevel, ""},
		{map[string]string{"log-level": " 7\n"}, -7, `"level":"7"`},
		{map[string]string{"log-level": "loud"}, -7, `\"loud\" is neither debug`},
		{map[string]string{"log-level": "129"}, -7, `\"129\" is neither debug`},
		{map[string]string{"level": "error"}, -7, ""},
		{nil, -7, ""},
		{map[string]string{"log-level": "panic"}, zapcore.PanicLevel, `"level":"panic"`},
	}
	for _, step := range steps {
		written.Reset()
		w.take(&corev1.ConfigMap{Data: step.data})
		if got := level.Level(); got != step.want {
			t.Errorf("after %q the level is %d, want %d", step.data, got, step.want)
		}
		if said := written.String(); !strings.Contains(said, step.says) || (step.says == "") != (said == "") {
			t.Errorf("after %q the log says %q, want %q", step.data, said, step.says)
		}
	}
}

func TestOneConfigMapIsWatchedForTheLevel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logger, level, _ := logOf(t)
		clientset := fake.NewClientset()
		var asked []string
		clientset.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
			list, _ := action.(clienttesting.ListAction)
			asked = append(asked, list.GetNamespace()+" "+list.GetListRestrictions().Fields.String())
			return false, nil, nil
		})
		w := &levelWatcher{
			client: clientset, source: LogConfigMap{Name: "mcp-operator-config", Namespace: "own", Key: "log-level"}, level: level, log: logger,
		}
		if w.NeedLeaderElection() {
			t.Error("a standby does not follow")
		}
		done := make(chan error, 1)
		go func() { done <- w.Start(t.Context()) }()
		synctest.Wait()

		configMaps := clientset.CoreV1().ConfigMaps("own")
		config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mcp-operator-config", Namespace: "own"}, Data: map[string]string{"log-level": "3"}}
		expect := func(what string, err error, want zapcore.Level) {
			t.Helper()
			synctest.Wait()
			if got := level.Level(); err != nil || got != want {
				t.Errorf("%s: the level is %d, want %d (%v)", what, got, want, err)
			}
		}
		expect("there is no ConfigMap", nil, zapcore.InfoLevel)
		_, err := configMaps.Create(t.Context(), config, metav1.CreateOptions{})
		expect("it appears", err, -3)
		config.Data["log-level"] = "error"
		_, err = configMaps.Update(t.Context(), config, metav1.UpdateOptions{})
		expect("it changes", err, zapcore.ErrorLevel)
		expect("it is deleted", configMaps.Delete(t.Context(), config.Name, metav1.DeleteOptions{}), zapcore.ErrorLevel)
		if diff := cmp.Diff([]string{"own metadata.name=mcp-operator-config"}, asked); diff != "" {
			t.Errorf("asked for (-want +got)\n%s", diff)
		}
		t.Cleanup(func() {
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	})
}
