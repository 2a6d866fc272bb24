package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"time"
)

// maxBody is how much of an answer is printed, in bytes.
const maxBody = 1 << 20

func serve(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	addr := flags.String("addr", ":8080", "address to listen on")
	delay := flags.Duration("delay", 0, "wait before each answer")
	status := flags.Int("status", http.StatusOK, "status of each answer")
	if err := flags.Parse(args); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	server := &http.Server{Addr: *addr, ReadHeaderTimeout: 10 * time.Second}
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		log.Printf("%s %s host %s from %s", r.Method, r.URL, r.Host, r.RemoteAddr)
		select {
		case <-time.After(*delay):
		case <-r.Context().Done():
			return
		}
		w.WriteHeader(*status)
		_, _ = fmt.Fprintf(w, "%s %s %s host %s from %s\n", host, r.Method, r.URL.Path, r.Host, r.RemoteAddr)
	})
	stopped := context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })
	defer stopped()
	log.Printf("%s listens on %s", host, *addr)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// headers is a repeatable flag of the form "Name: value".
type headers http.Header

func (h headers) String() string { return "" }

func (h headers) Set(s string) error {
	name, value, ok := strings.Cut(s, ":")
	if !ok {
		return fmt.Errorf("header %q has no colon", s)
	}
	http.Header(h).Add(strings.TrimSpace(name), strings.TrimSpace(value))
	return nil
}

// request is a command line of get or post.
type request struct {
	client http.Client
	header headers
	times  int
	args   []string
}

func parseRequest(name string, args []string) (*request, error) {
	r := &request{header: headers{}}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.IntVar(&r.times, "n", 1, "send each request so many times")
	flags.DurationVar(&r.client.Timeout, "timeout", 3*time.Second, "give up after")
	flags.Var(r.header, "H", "header, as \"Name: value\" (repeatable; Host is allowed)")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	r.args = flags.Args()
	// Each request shows whether a new connection is let through.
	r.client.Transport = &http.Transport{DisableKeepAlives: true}
	return r, nil
}

func get(ctx context.Context, args []string) error {
	r, err := parseRequest("get", args)
	if err != nil {
		return err
	}
	var errs []error
	for _, url := range r.args {
		errs = append(errs, r.send(ctx, http.MethodGet, url, ""))
	}
	return errors.Join(errs...)
}

func post(ctx context.Context, args []string) error {
	r, err := parseRequest("post", args)
	if err != nil {
		return err
	}
	if len(r.args) != 2 {
		return errUsage
	}
	if http.Header(r.header).Get("Content-Type") == "" {
		http.Header(r.header).Set("Content-Type", "application/json")
	}
	return r.send(ctx, http.MethodPost, r.args[0], r.args[1])
}

func (r *request) send(ctx context.Context, method, url, body string) error {
	var errs []error
	for range r.times {
		errs = append(errs, r.once(ctx, method, url, body))
	}
	return errors.Join(errs...)
}

func (r *request) once(ctx context.Context, method, url, body string) error {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = http.Header(r.header).Clone()
	req.Host = req.Header.Get("Host")
	begin := time.Now()
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	fmt.Printf("%d in %v: %s", resp.StatusCode, time.Since(begin).Round(time.Microsecond), b)
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", url, err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: status %d", method, url, resp.StatusCode)
	}
	return nil
}

func deny(_ context.Context, args []string) error {
	if len(args) != 3 {
		return errUsage
	}
	server := &http.Server{Addr: args[0], ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(refuse)}
	return server.ListenAndServeTLS(args[1], args[2])
}

func refuse(w http.ResponseWriter, r *http.Request) {
	var review struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Request    struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"response":{"uid":%q,"allowed":false,"status":{"message":"denied by the webhook"}}}`,
		review.APIVersion, review.Kind, review.Request.UID)
}
