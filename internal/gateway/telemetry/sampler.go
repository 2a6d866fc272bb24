package telemetry

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// sampler decides which spans are exported, as the samplers of the OpenTelemetry specification do.
type sampler struct {
	// byParent has a parent's decision hold for its child; bound is for what has no parent, or for all.
	byParent bool
	// bound is the part of all traces that is exported, of 2^63.
	bound uint64
}

const all = 1 << 63

// newSampler reads OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG. By default all is exported that no parent decided against.
func newSampler(getenv func(string) string) (sampler, error) {
	name := strings.ToLower(strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER")))
	rest, byParent := strings.CutPrefix(name, "parentbased_")
	switch rest {
	case "":
		if name == "" {
			return sampler{byParent: true, bound: all}, nil
		}
	case "always_on":
		return sampler{byParent, all}, nil
	case "always_off":
		return sampler{byParent, 0}, nil
	case "traceidratio":
		ratio := 1.0
		if text := getenv("OTEL_TRACES_SAMPLER_ARG"); text != "" {
			var err error
			if ratio, err = strconv.ParseFloat(text, 64); err != nil || ratio < 0 || ratio > 1 {
				return sampler{}, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG is %q; it must be a number from 0 to 1", text)
			}
		}
		return sampler{byParent, uint64(ratio * all)}, nil
	}
	return sampler{}, fmt.Errorf("OTEL_TRACES_SAMPLER is %q; always_on, always_off and traceidratio are known, each with parentbased_ before it too", name)
}

// samples decides by the parent, or by the trace id, so that everybody decides alike.
func (s *sampler) samples(parent, own *spanContext) bool {
	if s.byParent && parent.isValid() {
		return parent.flags&sampled != 0
	}
	return binary.BigEndian.Uint64(own.trace[8:])>>1 < s.bound
}
