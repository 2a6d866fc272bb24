package operator

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-logr/logr"
	uberzap "go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
)

// newLogger returns a logger, and its level, which may be set while it is used.
func newLogger(o Options, more ...zap.Opts) (logr.Logger, uberzap.AtomicLevel, error) {
	wanted, err := parseLevel(o.LogLevel)
	if err != nil {
		return logr.Logger{}, uberzap.AtomicLevel{}, fmt.Errorf("--log-level: %w", err)
	}
	var times zapcore.TimeEncoder
	if err := times.UnmarshalText([]byte(o.LogTime)); err != nil {
		return logr.Logger{}, uberzap.AtomicLevel{}, fmt.Errorf("--zap-time-encoding: %w", err)
	}
	stacktraces, err := zapcore.ParseLevel(o.LogStacktraces)
	if err != nil {
		return logr.Logger{}, uberzap.AtomicLevel{}, fmt.Errorf("--zap-stacktrace-level: %w", err)
	}
	// The level is set afterwards: made at a level above -2, the logger would drop lines of which there are many a second. An audit log
	// must not, and -2 may be asked for later.
	level := uberzap.NewAtomicLevelAt(math.MinInt8)
	logger := zap.New(append(more, zap.UseDevMode(o.LogFormat == "text"), zap.Level(level), zap.StacktraceLevel(stacktraces),
		func(z *zap.Options) { z.TimeEncoder = times })...)
	level.SetLevel(wanted)
	return logger, level, nil
}

// maxVerbosity is what more than that counts as: from 8 on client-go logs what it sends and receives, Secrets too.
const maxVerbosity = 7

// parseLevel turns a level's name, or a verbosity, into zap's level: verbosity n is -n, and at least -maxVerbosity.
func parseLevel(name string) (zapcore.Level, error) {
	switch strings.ToLower(name) {
	case "debug":
		return zapcore.DebugLevel, nil
	case "info":
		return zapcore.InfoLevel, nil
	case "error":
		return zapcore.ErrorLevel, nil
	case "panic":
		return zapcore.PanicLevel, nil
	}
	verbosity, err := strconv.ParseInt(name, 10, 16)
	if err != nil || verbosity < 1 || verbosity > 128 {
		return 0, fmt.Errorf("%q is neither debug, info, error, panic nor a verbosity from 1 to 128", name)
	}
	return zapcore.Level(-min(verbosity, maxVerbosity)), nil
}

// strangers takes what net/http logs by the standard logger: what the other end of a connection does wrong, in its own bytes, of which the
// first are kept.
type strangers struct{ log logr.Logger }

// maxStrangeLine bounds such a line, in bytes.
const maxStrangeLine = 256

// Write logs a line.
func (s strangers) Write(line []byte) (int, error) {
	s.log.V(1).Info(strconv.QuoteToGraphic(strings.TrimSpace(string(line[:min(len(line), maxStrangeLine)]))))
	return len(line), nil
}

// levelWatcher sets the level of the log as a ConfigMap says. It watches that one by name. Where there is none, or no longer, or it does
// not say a level, the level stays.
type levelWatcher struct {
	client kubernetes.Interface
	source LogConfigMap
	level  uberzap.AtomicLevel
	log    logr.Logger
}

// NeedLeaderElection says that a standby does this as well: it logs too.
func (w *levelWatcher) NeedLeaderElection() bool { return false }

// Start watches until ctx ends. Not to be allowed to watch ends nothing: it is logged, and tried again.
func (w *levelWatcher) Start(ctx context.Context) error {
	informer := coreinformers.NewFilteredConfigMapInformer(w.client, w.source.Namespace, 0, nil, func(options *metav1.ListOptions) {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", w.source.Name).String()
	})
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: w.take, UpdateFunc: func(_, after any) { w.take(after) },
	})
	if err != nil {
		return fmt.Errorf("watch the ConfigMap %s/%s of the log level: %w", w.source.Namespace, w.source.Name, err)
	}
	informer.RunWithContext(ctx)
	return nil
}

// take sets the level that a ConfigMap says.
func (w *levelWatcher) take(obj any) {
	config, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return
	}
	text, ok := config.Data[w.source.Key]
	if !ok {
		return
	}
	log := w.log.WithValues("configMap", w.source.Namespace+"/"+w.source.Name, "key", w.source.Key)
	level, err := parseLevel(strings.TrimSpace(text))
	if err != nil {
		log.Error(err, "the level of the log stays: the ConfigMap does not say one")
		return
	}
	before := w.level.Level()
	if level == before {
		return
	}
	w.level.SetLevel(min(level, before)) // the more talkative of both, so that it is told
	log.Info("the level of the log changes", "level", strings.TrimSpace(text))
	w.level.SetLevel(level)
}
