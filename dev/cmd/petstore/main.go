// Command petstore is an HTTP API with a public OpenAPI document, Swagger's Petstore, and keeps pets, orders and users in memory.
//
//	GET /openapi.json   the document, unchanged but for where the server is
//	/v2/...             the operations of the document
//	/echo               answers with the request; ?delay=2s waits before, and ?status=503 is the status
//	GET /requests       what it was asked, newest last, whether or not it was let in
//
// With --token-file everything but the document and /requests wants one of the bearer tokens in that file (one a line), which is read again
// for each request. Credentials are told as digests, so that answers hold none.
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		log.Fatal("petstore: ", err)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("petstore", flag.ContinueOnError)
	listen := flags.String("listen", ":8080", "address to listen on")
	path := flags.String("document", "", "file with the OpenAPI document")
	tokens := flags.String("token-file", "", "file with the bearer tokens that are let in, one a line (default: everybody is)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	document, err := readDocument(*path)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	server := &http.Server{Addr: *listen, ReadHeaderTimeout: 10 * time.Second, Handler: handler(document, *tokens)}
	stopped := context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })
	defer stopped()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
