// Package cluster keeps what gateways have to know of the cluster itself up to date, away from the reconcile workers: by what keys
// tokens of ServiceAccounts are verified, and where the API server is.
//
// It guarantees that what was learned once stays until something else was learned, and that nobody is woken unless something changed.
package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/fault"
)

const (
	// interval is the time between two looks, spread by a tenth; retry is the first pause after one that failed, which doubles.
	interval, retry = 5 * time.Minute, time.Second

	// timeout bounds one look.
	timeout = 20 * time.Second

	// maxKeys bounds the key set, in bytes: it is part of every routing table.
	maxKeys = 64 << 10
)

// Facts are what is known of the cluster.
type Facts struct {
	// Asked says that a first look has ended.
	Asked bool

	// Issuer is the iss claim of tokens of ServiceAccounts, Keys is the JSON Web Key Set that they are verified by. Empty: not known.
	Issuer string
	Keys   json.RawMessage
	// IssuerError says why they are not known, or not refreshed.
	IssuerError string

	// APIServer are the addresses of the API server, before and after its Service, sorted. None: not known.
	APIServer []netip.AddrPort
	// APIServerError says why they are not known, or not refreshed.
	APIServerError string
}

// Options are the parts of a Source.
type Options struct {
	// ReadPath reads a path of the API server that is no resource.
	ReadPath func(ctx context.Context, path string) ([]byte, error)
	// Addresses returns the addresses of the API server.
	Addresses func(ctx context.Context) ([]netip.AddrPort, error)
	// Changed is called when something else was learned. It may block until ctx ends.
	Changed func(ctx context.Context)
}

// Source learns Facts. Make it with New and start it with Start.
type Source struct {
	opts Options

	mu    sync.Mutex
	facts Facts
}

// New returns a Source that knows nothing yet.
func New(opts Options) *Source { return &Source{opts: opts} }

// Facts returns what is known.
func (s *Source) Facts() Facts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.facts
}

// NeedLeaderElection says that a standby learns too: it can act at once.
func (s *Source) NeedLeaderElection() bool { return false }

// Start looks now, and again and again until ctx ends.
func (s *Source) Start(ctx context.Context) error {
	pause := retry
	for {
		after := time.Duration(float64(interval) * (0.9 + 0.2*rand.Float64())) //nolint:gosec // G404: spreads load, guards nothing
		if s.look(ctx) {
			pause = retry
		} else {
			after, pause = pause, min(2*pause, interval)
		}
		timer := time.NewTimer(after)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// look asks once, and says whether everything could be learned.
func (s *Source) look(ctx context.Context) bool {
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	issuer, keys, issuerErr := s.issuer(asking)
	addresses, addressErr := s.addresses(asking)
	if ctx.Err() != nil {
		return true
	}
	s.mu.Lock()
	before := s.facts
	s.facts.Asked, s.facts.IssuerError, s.facts.APIServerError = true, "", ""
	if issuerErr != nil {
		s.facts.IssuerError = issuerErr.Error()
	} else {
		s.facts.Issuer, s.facts.Keys = issuer, keys
	}
	if addressErr != nil {
		s.facts.APIServerError = addressErr.Error()
	} else {
		s.facts.APIServer = slices.Compact(slices.SortedFunc(slices.Values(addresses), netip.AddrPort.Compare))
	}
	changed := !reflect.DeepEqual(before, s.facts)
	s.mu.Unlock()
	if changed {
		s.opts.Changed(ctx)
	}
	return issuerErr == nil && addressErr == nil
}

// addresses asks where the API server is.
func (s *Source) addresses(ctx context.Context) (addresses []netip.AddrPort, err error) {
	defer fault.Catch("the addresses of the API server", &err)
	addresses, err = s.opts.Addresses(ctx)
	if err == nil && len(addresses) == 0 {
		err = errors.New("the Service kubernetes in the namespace default has no address")
	}
	return addresses, err
}

const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/openid/v1/jwks"
)

// issuer asks the API server who signs tokens of ServiceAccounts, and for the keys. The address of the keys that the document names
// is not asked: it may lead anywhere.
func (s *Source) issuer(ctx context.Context) (issuer string, keys json.RawMessage, err error) {
	defer fault.Catch("the issuer of the API server", &err)
	document, err := s.opts.ReadPath(ctx, discoveryPath)
	if err != nil {
		return "", nil, fmt.Errorf("ask the API server for %s (may the operator read it?): %w", discoveryPath, err)
	}
	var discovered struct {
		Issuer string `json:"issuer"`
	}
	if err := json.Unmarshal(document, &discovered); err != nil {
		return "", nil, fmt.Errorf("read %s of the API server: %w", discoveryPath, err)
	}
	if u, err := url.Parse(discovered.Issuer); err != nil || u.Scheme == "" || u.Host == "" {
		return "", nil, fmt.Errorf("%s of the API server names no issuer: set its flag --service-account-issuer to an https URL", discoveryPath)
	}
	raw, err := s.opts.ReadPath(ctx, keysPath)
	if err != nil {
		return "", nil, fmt.Errorf("ask the API server for %s (may the operator read it?): %w", keysPath, err)
	}
	keys, err = canonical(raw)
	return discovered.Issuer, keys, err
}

// canonical writes a key set in the one way, so that no table changes because a server writes the same keys in another order.
func canonical(raw []byte) (json.RawMessage, error) {
	if len(raw) > maxKeys {
		return nil, fmt.Errorf("%s of the API server has %d bytes, more than %d", keysPath, len(raw), maxKeys)
	}
	var set struct {
		Keys []map[string]any `json:"keys"`
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, fmt.Errorf("read %s of the API server: %w", keysPath, err)
	}
	if len(set.Keys) == 0 {
		return nil, fmt.Errorf("%s of the API server holds no key", keysPath)
	}
	texts := make([][]byte, 0, len(set.Keys))
	for _, key := range set.Keys {
		text, err := json.Marshal(key)
		if err != nil {
			return nil, fmt.Errorf("write a key of %s: %w", keysPath, err)
		}
		texts = append(texts, text)
	}
	slices.SortFunc(texts, bytes.Compare)
	return json.RawMessage(`{"keys":[` + string(bytes.Join(texts, []byte(","))) + `]}`), nil
}
