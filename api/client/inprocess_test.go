package client

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// A handler in this process that panics ends its request only, whether it has begun to answer or not.
func TestPanicOfAHandlerInThisProcess(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"before an answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"within an answer": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"agents":`)
			panic(http.ErrAbortHandler)
		},
		"an unknown reason": func(http.ResponseWriter, *http.Request) { panic("an unknown reason") },
	} {
		_, err := ReadFrom(t.TempDir(), handler).Agents(t.Context())
		if !errors.Is(err, errAborted) || errors.As(err, new(*NoDaemon)) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "an unknown reason" && !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not tell the reason", err)
		}
	}
	if _, err := Get[api.Status](t.Context(), ReadFrom(t.TempDir(), http.NotFoundHandler()), "/status", nil); err == nil {
		t.Error("an answer without success is taken for one")
	}
}

// body tells when it is closed.
type body struct {
	io.Reader
	closed chan struct{}
}

func (b *body) Close() error {
	close(b.closed)
	return nil
}

// The body of a request is closed, as http.RoundTripper asks for, whether or not the handler reads it.
func TestBodyOfARequestInThisProcess(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"read":     func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) },
		"not read": func(http.ResponseWriter, *http.Request) {},
		"panics":   func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		sent := &body{strings.NewReader("text"), make(chan struct{})}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://fairlead/", sent)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := (inProcess{handler}).RoundTrip(req); err == nil {
			resp.Body.Close()
		}
		wait.Until(t, name+": the body is closed", func() bool {
			select {
			case <-sent.closed:
				return true
			default:
				return false
			}
		})
	}
}
