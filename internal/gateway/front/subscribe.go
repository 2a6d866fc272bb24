package front

import "strings"

// subscribe adds or removes a resource. It is bounded, since nothing else bounds what a client may ask for.
func (s *session) subscribe(uri string, wanted bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.subscriptions[uri]
	switch {
	case wanted && !known:
		if len(s.subscriptions) >= maxSubscriptions || s.subscriptionBytes+len(uri) > maxSubscriptionBytes {
			return false
		}
		s.subscriptions[strings.Clone(uri)] = struct{}{}
		s.subscriptionBytes += len(uri)
	case known && !wanted:
		delete(s.subscriptions, uri)
		s.subscriptionBytes -= len(uri)
	}
	close(s.resubscribed)
	s.resubscribed = make(chan struct{})
	return true
}

// What a session may subscribe to: so many resources, whose URIs have so many bytes together.
const (
	maxSubscriptions     = 256
	maxSubscriptionBytes = 64 << 10
)

// subscribed returns the resources subscribed to, and what is closed when they change.
func (s *session) subscribed() (map[string]struct{}, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uris := make(map[string]struct{}, len(s.subscriptions))
	for uri := range s.subscriptions {
		uris[uri] = struct{}{}
	}
	return uris, s.resubscribed
}
