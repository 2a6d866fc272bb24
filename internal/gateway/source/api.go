package source

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-operator/mcp-operator/internal/table"
)

const (
	serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount/"
	// maxEvent bounds what is read of one event or list: a ConfigMap of 1 MiB, each byte escaped, and its metadata.
	maxEvent = 8 << 20
	maxFile  = 256 << 10
	// listTimeout bounds a list, and a watch until its first byte.
	listTimeout = 30 * time.Second
	// watchTimeout is when the API server is asked to end a watch, so that a token is never in use for much longer.
	watchTimeout = 5 * time.Minute
)

// ConfigMap names the ConfigMap to watch. The gateway's account needs get, list and watch on that one name.
type ConfigMap struct {
	// Namespace is by default the one of the pod.
	Namespace string
	Name      string
	// Key of its data that is the table; by default "table.json".
	Key string
	// Server is the API server's https URL; by default what KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT say.
	Server string
	// TokenFile and CAFile are read again for each request; by default those of the pod's service account.
	TokenFile string
	CAFile    string

	// dial replaces the network in tests.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// api speaks with the API server. The token goes to Server and nowhere else: no proxy, no redirect, https only.
type api struct {
	ConfigMap

	url    string
	client *http.Client
	// ca is what client verifies the API server with.
	ca []byte
}

func newAPI(c ConfigMap) (*api, error) {
	if c.Namespace == "" {
		namespace, err := readSmall(serviceAccountFolder + "namespace")
		if err != nil {
			return nil, fmt.Errorf("find the pod's namespace (name it where there is no service account): %w", err)
		}
		c.Namespace = namespace
	}
	if c.Server == "" {
		host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
		if host == "" || port == "" {
			return nil, errors.New("find the API server: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set; " +
				"outside of a cluster read the table from a file")
		}
		c.Server = "https://" + net.JoinHostPort(host, port)
	}
	for _, d := range []struct {
		field    *string
		fallback string
	}{{&c.Key, "table.json"}, {&c.TokenFile, serviceAccountFolder + "token"}, {&c.CAFile, serviceAccountFolder + "ca.crt"}} {
		if *d.field == "" {
			*d.field = d.fallback
		}
	}
	switch server, err := url.Parse(c.Server); {
	case err != nil || server.Scheme != "https" || server.Host == "" || server.User != nil || strings.Trim(server.Path, "/") != "" || server.RawQuery != "":
		return nil, fmt.Errorf("the API server's URL %q must be https://<host>:<port>", c.Server)
	case !table.IsConfigMapName(c.Namespace) || !table.IsConfigMapName(c.Name):
		return nil, fmt.Errorf("%q in namespace %q cannot be the name of a ConfigMap", c.Name, c.Namespace)
	case !table.IsConfigMapKey(c.Key):
		return nil, fmt.Errorf("%q cannot be a key of a ConfigMap", c.Key)
	}
	return &api{ConfigMap: c, url: strings.TrimRight(c.Server, "/") + "/api/v1/namespaces/" + c.Namespace + "/configmaps"}, nil
}

// object is what is needed of a ConfigMap, of the list it comes in, and of the Status that an ERROR event bears.
type object struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
	// BinaryData is only read of what tables name, and never the table itself.
	BinaryData map[string][]byte `json:"binaryData"`
	Items      []object          `json:"items"`
	Code       int               `json:"code"`
}

// contentOf is what a ConfigMap, or the lack of one (nil), says.
func (a *api) contentOf(o *object) *content {
	c := &content{origin: "ConfigMap " + a.Namespace + "/" + a.Name}
	if o == nil {
		c.err = errors.New("does not exist")
		return c
	}
	text, ok := o.Data[a.Key]
	if !ok {
		c.err = fmt.Errorf("has no key %q", a.Key)
		return c
	}
	c.data = []byte(text)
	return c
}

// list returns the ConfigMap, nil if there is none, and the resourceVersion to watch from.
func (a *api) list(ctx context.Context) (*object, string, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	body, err := a.ask(ctx, url.Values{})
	if err != nil {
		return nil, "", err
	}
	defer body.Close()
	var listed object
	if err := json.NewDecoder(&meter{body, maxEvent}).Decode(&listed); err != nil {
		return nil, "", fmt.Errorf("read the API server's list: %w", err)
	}
	if listed.Metadata.ResourceVersion == "" {
		return nil, "", errors.New("the API server's list bears no resourceVersion")
	}
	for i := range listed.Items {
		if listed.Items[i].Metadata.Name == a.Name {
			return &listed.Items[i], listed.Metadata.ResourceVersion, nil
		}
	}
	return nil, listed.Metadata.ResourceVersion, nil
}

// events are those of one watch.
type events struct {
	io.Closer

	meter   *meter
	decoder *json.Decoder
}

type event struct {
	Type   string `json:"type"`
	Object object `json:"object"`
}

// watch begins a watch.
func (a *api) watch(ctx context.Context, version string) (*events, error) {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout+listTimeout)
	body, err := a.ask(ctx, url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {version},
		"timeoutSeconds": {strconv.Itoa(int(watchTimeout.Seconds()))},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	m := &meter{body, maxEvent}
	return &events{Closer: closer{body, cancel}, meter: m, decoder: json.NewDecoder(m)}, nil
}

// next returns the next event; io.EOF is the orderly end, errExpired asks for a new list.
func (e *events) next() (*event, error) {
	next := new(event)
	e.meter.left = maxEvent
	err := e.decoder.Decode(next)
	switch {
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	case err != nil:
		return nil, fmt.Errorf("read the API server's events: %w", err)
	case next.Type == "ERROR" && next.Object.Code == http.StatusGone:
		return nil, errExpired
	case next.Type == "ERROR":
		return nil, fmt.Errorf("the API server ended the watch with code %d", next.Object.Code)
	case next.Object.Metadata.ResourceVersion == "":
		return nil, errors.New("an event of the API server bears no resourceVersion")
	}
	return next, nil
}

// named returns a ConfigMap that the table names.
func (a *api) named(ctx context.Context, name string) (*object, error) {
	body, err := a.get(ctx, a.url+"/"+url.PathEscape(name), "get on ConfigMap "+a.Namespace+"/"+name)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	o := new(object)
	if err := json.NewDecoder(&meter{body, maxEvent}).Decode(o); err != nil {
		return nil, fmt.Errorf("read the API server's ConfigMap: %w", err)
	}
	return o, nil
}

// ask asks for the one ConfigMap that holds the table.
func (a *api) ask(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	query.Set("fieldSelector", "metadata.name="+a.Name)
	return a.get(ctx, a.url+"?"+query.Encode(), "get, list and watch on ConfigMap "+a.Namespace+"/"+a.Name)
}

// Errors of the API server that are told apart.
var (
	errMissing   = errors.New("the API server does not have it (404)")
	errForbidden = errors.New("the service account lacks a right (403)")
)

// refusal is a text of its own for an error that is told apart.
type refusal struct {
	text string
	kind error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.kind }

// get returns the body of an answer that is 200. The rights are those that it takes, for messages.
func (a *api) get(ctx context.Context, address, rights string) (io.ReadCloser, error) {
	if err := a.trust(); err != nil {
		return nil, err
	}
	token, err := readSmall(a.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("read the service account's token: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask the API server: %w", err)
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "mcp-gateway")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := a.client.Do(request)
	if err != nil {
		if failure, ok := errors.AsType[*url.Error](err); ok {
			err = failure.Err // Its own text repeats the whole query.
		}
		return nil, fmt.Errorf("ask the API server at %s: %w", a.Server, err)
	}
	if response.StatusCode == http.StatusOK {
		return response.Body, nil
	}
	response.Body.Close()
	switch response.StatusCode {
	case http.StatusGone:
		return nil, errExpired
	case http.StatusUnauthorized:
		return nil, errors.New("the API server does not accept the service account's token (401)")
	case http.StatusForbidden:
		return nil, &refusal{"the service account lacks " + rights + " (403)", errForbidden}
	case http.StatusNotFound:
		return nil, errMissing
	}
	return nil, fmt.Errorf("the API server answers %d", response.StatusCode)
}

// trust makes the client anew when the CA file changed.
func (a *api) trust() error {
	ca, err := readFile(a.CAFile)
	if err != nil {
		return fmt.Errorf("read the API server's CA: %w", err)
	}
	if a.client != nil && bytes.Equal(ca, a.ca) {
		return nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return fmt.Errorf("no certificate in the API server's CA file %s", a.CAFile)
	}
	a.close()
	dial := a.dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	}
	a.ca, a.client = ca, &http.Client{
		Transport: &http.Transport{
			DialContext:            dial,
			TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    5 * time.Second,
			ResponseHeaderTimeout:  listTimeout,
			MaxResponseHeaderBytes: 64 << 10,
			DisableCompression:     true,
			ForceAttemptHTTP2:      true,
			// A watch says nothing for minutes: only a ping tells that the other end is still there.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return nil
}

func (a *api) close() {
	if a.client != nil {
		a.client.CloseIdleConnections()
	}
}
