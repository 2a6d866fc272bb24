package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// modern is the protocol version that tools and call speak: every message stands for itself.
const modern = "2026-07-28"

// endpoint is an MCP endpoint, and how to reach it.
type endpoint struct {
	url, tokenFile string
	client         http.Client
}

// parse reads the flags; more of them may be set up before.
func (e *endpoint) parse(flags *flag.FlagSet, args []string) error {
	flags.StringVar(&e.url, "url", os.Getenv("MCP_SERVER_URL"), "the endpoint (default: $MCP_SERVER_URL)")
	flags.StringVar(&e.tokenFile, "token-file", os.Getenv("MCP_TOKEN_FILE"), "file with a bearer token (default: $MCP_TOKEN_FILE)")
	flags.DurationVar(&e.client.Timeout, "timeout", 10*time.Second, "give up after")
	ca := flags.String("ca", "", "file with the certificates to trust, in PEM")
	if err := flags.Parse(args); err != nil {
		return err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	e.client.Transport = transport
	if *ca == "" {
		return nil
	}
	content, err := os.ReadFile(*ca)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return fmt.Errorf("%s holds no certificate", *ca)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	return nil
}

// answer is what a request came to.
type answer struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func (e *endpoint) ask(ctx context.Context, method, name string, params map[string]any) (json.RawMessage, error) {
	params["_meta"] = map[string]any{"io.modelcontextprotocol/protocolVersion": modern, "io.modelcontextprotocol/clientCapabilities": map[string]any{}}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {modern}, "Mcp-Method": {method},
	}
	if name != "" {
		req.Header.Set("Mcp-Name", name)
	}
	if e.tokenFile != "" {
		token, err := os.ReadFile(e.tokenFile)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	}
	resp, err := e.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	return read(resp)
}

// read takes the answer out of a body or an event stream.
func read(resp *http.Response) (json.RawMessage, error) {
	var a answer
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for lines := bufio.NewReader(resp.Body); a.Result == nil && a.Error == nil; {
			line, err := lines.ReadString('\n')
			if data, ok := strings.CutPrefix(line, "data:"); ok {
				_ = json.Unmarshal([]byte(data), &a)
			} else if err != nil {
				return nil, fmt.Errorf("the stream ended without an answer: %w", err)
			}
		}
	} else {
		b, err := io.ReadAll(io.LimitReader(resp.Body, 16*maxBody))
		if err != nil {
			return nil, fmt.Errorf("read the answer: %w", err)
		}
		if json.Unmarshal(b, &a) != nil || a.Result == nil && a.Error == nil {
			return nil, fmt.Errorf("status %d: %s", resp.StatusCode, bytes.TrimSpace(b))
		}
	}
	if a.Error != nil {
		return nil, fmt.Errorf("status %d: error %d: %s %s", resp.StatusCode, a.Error.Code, a.Error.Message, a.Error.Data)
	}
	return a.Result, nil
}

func tools(ctx context.Context, args []string) error {
	var e endpoint
	if err := e.parse(flag.NewFlagSet("tools", flag.ContinueOnError), args); err != nil {
		return err
	}
	for cursor := ""; ; {
		params := map[string]any{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		result, err := e.ask(ctx, "tools/list", "", params)
		if err != nil {
			return err
		}
		var page struct {
			Tools []struct {
				Name        string `json:"name"`
				Description string `json:"description"`
			} `json:"tools"`
			NextCursor string `json:"nextCursor"`
		}
		if err := json.Unmarshal(result, &page); err != nil {
			return err
		}
		for _, tool := range page.Tools {
			about, _, _ := strings.Cut(tool.Description, "\n")
			fmt.Println(strings.TrimSpace(tool.Name + "\t" + about))
		}
		if cursor = page.NextCursor; cursor == "" {
			return nil
		}
	}
}

func (e *endpoint) call(ctx context.Context, tool string, arguments json.RawMessage) (string, error) {
	result, err := e.ask(ctx, "tools/call", tool, map[string]any{"name": tool, "arguments": arguments})
	if err != nil {
		return "", err
	}
	var r struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	}
	if err := json.Unmarshal(result, &r); err != nil {
		return "", err
	}
	var text strings.Builder
	for _, c := range r.Content {
		text.WriteString(c.Text)
	}
	if r.IsError {
		return "", errors.New("the tool says: " + text.String())
	}
	return text.String(), nil
}

func call(ctx context.Context, args []string) error {
	var (
		e    endpoint
		many load
	)
	flags := flag.NewFlagSet("call", flag.ContinueOnError)
	flags.StringVar(&many.until, "until", "", "call again and again until this file exists, then print how many calls there were, before it was there, and "+
		"that failed, and how long the longest took; "+
		"the same with "+begun+" is made after the first")
	flags.IntVar(&many.atOnce, "at-once", 1, "so many calls at the same time, with -until")
	flags.DurationVar(&many.every, "every", 0, "pause after each call, with -until")
	if err := e.parse(flags, args); err != nil {
		return err
	}
	tool, arguments := flags.Arg(0), json.RawMessage(cmp.Or(flags.Arg(1), "{}"))
	if tool == "" || !json.Valid(arguments) {
		return errUsage
	}
	if many.until != "" {
		return many.run(ctx, func(ctx context.Context) error {
			_, err := e.call(ctx, tool, arguments)
			return err
		})
	}
	text, err := e.call(ctx, tool, arguments)
	if err == nil {
		fmt.Println(text)
	}
	return err
}
