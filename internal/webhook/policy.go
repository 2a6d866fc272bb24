// Package webhook holds MCPServers, of our own API and of the compatibility API, and MCPAgents to what the operator's command line demands of
// them: what CEL cannot know.
//
// It guarantees that all are judged alike, so that none is a way around what is refused to the other.
package webhook

import (
	"fmt"
	"regexp"
	"strings"
)

// Policy is what every MCPServer and MCPAgent has to meet. Its zero value admits no storage mount: that of a Policy that asks for nothing is -1.
type Policy struct {
	// Images are beginnings of the images that may run; nil lets all run. A beginning ends where the image does, or before a '/', a
	// tag or a digest, so that registry.example.com/team admits registry.example.com/team/server:1, and not registry.example.com/teamwork.
	Images []string

	// RequireDigest wants images to end in @sha256: and a digest.
	RequireDigest bool

	// MaxStorageMounts is how many volumes a server may mount; -1 is any number.
	MaxStorageMounts int

	// RequiredLabels are keys of labels that the object must have, with whatever value.
	RequiredLabels []string
}

// Empty says whether the policy asks for nothing.
func (p Policy) Empty() bool {
	return len(p.Images) == 0 && !p.RequireDigest && p.MaxStorageMounts < 0 && len(p.RequiredLabels) == 0
}

// subject is what is judged of an object.
type subject struct {
	image string
	// noImage says that the object runs no image of the user's.
	noImage bool

	mounts int
	labels map[string]string
}

var endsInDigest = regexp.MustCompile(`@sha256:[0-9a-f]{64}$`)

// judge says what of an object does not meet the policy, and what to do; nothing if all does.
func (p Policy) judge(s subject) []string {
	var reasons []string
	if len(p.Images) > 0 && !s.noImage && !p.admits(s.image) {
		reasons = append(reasons, fmt.Sprintf("image %q is not on the allow list: it must begin with one of %q", s.image, p.Images))
	}
	if p.RequireDigest && !s.noImage && !endsInDigest.MatchString(s.image) {
		reasons = append(reasons, fmt.Sprintf("image %q must be given by digest: it must end in @sha256: and 64 hexadecimal digits", s.image))
	}
	if p.MaxStorageMounts >= 0 && s.mounts > p.MaxStorageMounts {
		reasons = append(reasons, fmt.Sprintf("volumes mounted: %d, at most %d may be", s.mounts, p.MaxStorageMounts))
	}
	for _, key := range p.RequiredLabels {
		if _, ok := s.labels[key]; !ok {
			reasons = append(reasons, fmt.Sprintf("label %q is required", key))
		}
	}
	return reasons
}

func (p Policy) admits(image string) bool {
	for _, beginning := range p.Images {
		if rest, ok := strings.CutPrefix(image, beginning); ok && endsThere(beginning, rest) {
			return true
		}
	}
	return false
}

// endsThere says whether a beginning of an image, followed by rest, ends where a part of the image does. What follows a ':' or '@' is a tag
// or a digest only if no '/' comes after: else it is the port of another registry.
func endsThere(beginning, rest string) bool {
	last := beginning[len(beginning)-1:]
	switch {
	case rest == "", strings.HasPrefix(rest, "/"), last == "/":
		return true
	case strings.ContainsAny(rest[:1], ":@"), strings.ContainsAny(last, ":@"):
		return !strings.Contains(rest, "/")
	}
	return false
}
