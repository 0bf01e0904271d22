package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
)

// bodyMost returns the maximum length of a request's body in bytes.
func bodyMost(r *http.Request) int64 {
	if r.Method == http.MethodPost && (r.URL.Path == api.Base+importPath || renamed[strings.TrimPrefix(r.URL.Path, api.Base)] == importPath) {
		return documentBytesMax
	}
	if r.Method == http.MethodPost && r.URL.Path == api.Base+startRunPath {
		return api.StartRunBytesMax
	}
	return api.BodyBytesMax
}

// whole reads the body of a request before any handler does. A body that is too long, too slow or
// cut off is then answered as a fault of the request.
func (s *Server) whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		rc, most := http.NewResponseController(w), bodyMost(r)
		_ = rc.SetReadDeadline(time.Now().Add(s.waits.body)) // if it cannot be set, the server's own limit applies
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		var long *http.MaxBytesError
		switch {
		case err == nil:
			_ = rc.SetReadDeadline(time.Time{})
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
			return
		case errors.As(err, &long):
			api.NewProblem(http.StatusRequestEntityTooLarge, "the body is too large: the limit is %d bytes", most).Write(w)
		case errors.Is(err, os.ErrDeadlineExceeded):
			sendAway(w)
			api.NewProblem(http.StatusRequestTimeout, "the body did not arrive within %s", s.waits.body).Write(w)
		default:
			sendAway(w)
			api.NewProblem(http.StatusBadRequest, "the body was cut off, or is not encoded as the headers say: %s", api.Shorten(err.Error())).Write(w)
		}
	})
}
