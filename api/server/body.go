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

// bodyMost is how long the body of a request may be.
func bodyMost(r *http.Request) int64 {
	if r.Method == http.MethodPost && (r.URL.Path == api.Base+importPath || renamed[strings.TrimPrefix(r.URL.Path, api.Base)] == importPath) {
		return documentBytesMax
	}
	return api.BodyBytesMax
}

// whole reads the body of a request before anybody looks at it, so that one which is too
// long, too slow or broken on the way is answered as what it is: a fault of the request.
func (s *Server) whole(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		rc, most := http.NewResponseController(w), bodyMost(r)
		_ = rc.SetReadDeadline(time.Now().Add(s.waits.body)) // where it cannot be set, the server's own limit holds
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		var long *http.MaxBytesError
		switch {
		case err == nil:
			_ = rc.SetReadDeadline(time.Time{})
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
			return
		case errors.As(err, &long):
			api.NewProblem(http.StatusRequestEntityTooLarge, "the body is too large: %d bytes are the most", most).Write(w)
		case errors.Is(err, os.ErrDeadlineExceeded):
			sendAway(w)
			api.NewProblem(http.StatusRequestTimeout, "the body did not come within %s", s.waits.body).Write(w)
		default:
			sendAway(w)
			api.NewProblem(http.StatusBadRequest, "the body broke off, or is not encoded as the headers say: %s", api.Shorten(err.Error())).Write(w)
		}
	})
}
