package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/core/change"
)

// straight refuses paths with "..", "." or an empty name. A redirect to the cleaned path would
// answer another request than the client sent. Percent-encoded characters are part of a name, and
// the routes check them.
func straight(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.URL.EscapedPath()
		clean := path.Clean(asked)
		if clean != "/" && strings.HasSuffix(asked, "/") {
			clean += "/"
		}
		if asked != "" && asked != clean {
			api.NewProblem(http.StatusNotFound, "there is no %s; a name in a path cannot be empty, \".\" or \"..\"",
				api.Shorten(asked)).Write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// entrance is the way by which a request came in.
type entrance string

const (
	entranceSocket entrance = "socket"
	entrancePage   entrance = "page"  // TCP with the secret of a browser that is signed in
	entranceAway   entrance = "away"  // the same at one of Options.Origins: the browser may be on another machine
	entranceToken  entrance = "token" // TCP with the token
)

type entranceKey struct{}

// entered records by which entrance a request came in.
func entered(by entrance, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), entranceKey{}, by)))
	})
}

// withCaller is an http.Server's ConnContext.
func (s *Server) withCaller(ctx context.Context, c net.Conn) context.Context {
	return caller.WithConn(ctx, c, s.repository())
}

// repository returns the folder in the form that shims use.
func (s *Server) repository() string {
	if dir, err := realDir(s.opts.Dir); err == nil {
		return dir
	}
	return s.opts.Dir
}

// identity returns what is known of the caller of a request. The controllers' rules decide what it may do.
func identity(ctx context.Context) caller.Identity { return caller.IdentityIn(ctx) }

// forAll are the routes besides GET for a caller that was not seen: one that stops work, and two that read.
var forAll = []string{api.Base + "/hold", api.Base + "/policy/check", api.Base + "/route"}

// ours lets agents of other repositories only read, and a caller that was not seen only read and hold the team. It comes after the whole
// body was read: a request looks its caller up once, and the caller may have ended while it sent the body. The rules of single orders
// decide for all other callers.
func ours(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			is, event := identity(r.Context()), r.Method+" "+api.Shorten(r.URL.Path)
			err := is.MayChange("the team", event)
			if err == nil && !slices.Contains(forAll, r.URL.Path) {
				err = is.Known("the team", event)
			}
			if err != nil {
				api.ProblemOf(err).Write(w)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// notSeen is the actor's name if the caller could not be inspected. No agent can have this name.
const notSeen = "(not seen)"

// actor is the caller as recorded in the journal. A caller with the token or the user id counts as
// the person who runs the daemon. A caller that runs in a Fairlead session is that session's agent,
// and a caller that cannot be inspected may be any agent.
func (s *Server) actor(ctx context.Context) change.Actor {
	switch is := identity(ctx); {
	case is.Session != "":
		return change.Actor{Kind: "agent", ID: is.Agent()}
	case is.Unknown:
		return change.Actor{Kind: "agent", ID: notSeen}
	}
	id := s.opts.User
	if host, elsewhere := ctx.Value(hostKey{}).(string); elsewhere {
		return change.Actor{Kind: "human", ID: id + " (host " + host + ")"}
	}
	switch ctx.Value(entranceKey{}) {
	case entrancePage, entranceAway:
		id += " (Mission Control)"
	case entranceToken:
		id += " (token)"
	}
	return change.Actor{Kind: "human", ID: id}
}

const apiPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// headers sets the headers that every answer has, and has the caller looked up at most once. A panic in a handler ends only its request: it
// is logged with its stack, and the daemon continues.
func (s *Server) headers(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", apiPolicy)
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		noted := &begun{ResponseWriter: w}
		defer func() {
			switch bug := recover(); bug {
			case nil:
			case http.ErrAbortHandler:
				panic(bug)
			default:
				s.log.Error("a bug ended a request", "method", r.Method, "path", r.URL.Path, "bug", bug, "stack", string(debug.Stack()))
				if noted.begun {
					panic(http.ErrAbortHandler) // a client must not take a cut answer for a complete one
				}
				api.NewProblem(http.StatusInternalServerError, "this is a bug in fairlead; see its log for details").Write(w)
			}
		}()
		next.ServeHTTP(noted, r.WithContext(caller.Once(r.Context())))
	})
}

// begun records whether any part of an answer was sent.
type begun struct {
	http.ResponseWriter
	begun bool
}

func (b *begun) WriteHeader(status int) {
	b.begun = true
	b.ResponseWriter.WriteHeader(status)
}

func (b *begun) Write(p []byte) (int, error) {
	b.begun = true
	return b.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (b *begun) Unwrap() http.ResponseWriter { return b.ResponseWriter }

// guard accepts requests that name this server as host, come from no other site, and have the token or a browser's
// secret. The page itself and the exchange of a login code need neither: they reveal nothing. A cookie counts for
// nothing: a browser sends one to every port of this machine, so also to other programs' servers.
func (s *Server) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, outside := originOf(r, s.hosts, s.opts.Origins)
		if at == "" {
			sendAway(w)
			api.NewProblem(http.StatusMisdirectedRequest,
				"this fairlead server does not answer to the host name %q; use the address that `fairlead up` printed, or name the origin under `origins` in fairlead.yaml", api.Shorten(r.Host)).Write(w)
			return
		}
		if cross.Check(r) != nil || !fromOwnPage(r, at) {
			sendAway(w)
			api.NewProblem(http.StatusForbidden,
				"a page of another site sent this request; only fairlead's own page and programs with the token may do so; a reverse proxy has to pass the Host header on").Write(w)
			return
		}
		if open(r) {
			entered(entrancePage, next).ServeHTTP(w, r)
			return
		}
		by, valid, ok := s.known(r)
		if !ok || outside && by != entrancePage { // an agent can read the token, and behind a proxy it would look like a person
			unknown(w)
			return
		}
		if outside {
			by = entranceAway
		}
		if valid != nil {
			ctx, cancel := context.WithCancel(r.Context())
			defer cancel()
			defer context.AfterFunc(valid, cancel)() // a revoked login ends its streams
			r = r.WithContext(ctx)
		}
		entered(by, next).ServeHTTP(w, r)
	})
}

// open reports whether a request needs no secret: the page's files, which are the same for everybody, and the
// exchange of a login code for a secret.
func open(r *http.Request) bool {
	if r.URL.Path == api.Base+loginsPath {
		return r.Method == http.MethodPost
	}
	return !strings.HasPrefix(r.URL.Path, "/api/") && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

// sendAway closes the connection after the answer, so that a refused client does not occupy a
// connection.
func sendAway(w http.ResponseWriter) { w.Header().Set("Connection", "close") }

// known returns the entrance of a caller that has the token or the secret of a browser that is signed in; in the second
// case also a context that ends when that login is revoked.
func (s *Server) known(r *http.Request) (entrance, context.Context, bool) {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if given = strings.TrimSpace(given); given == "" || !strings.EqualFold(scheme, "Bearer") {
		return "", nil, false
	}
	if s.isToken(given) {
		return entranceToken, nil, true
	}
	if s.opts.Logins != nil {
		if _, valid, ok := s.opts.Logins.Check(given); ok {
			return entrancePage, valid, true
		}
	}
	return "", nil, false
}

// isToken compares in constant time.
func (s *Server) isToken(given string) bool {
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1 && !s.closed
}

// unknown answers a caller without a valid secret.
func unknown(w http.ResponseWriter) {
	sendAway(w)
	w.Header().Set("WWW-Authenticate", `Bearer realm="fairlead"`)
	api.NewProblem(http.StatusUnauthorized,
		"the token is missing or wrong: send `Authorization: Bearer TOKEN` with the content of .fairlead/token; a browser signs in with `fairlead open`; the command line needs neither").Write(w)
}

// bodyMost returns the maximum length of a request's body in bytes.
func bodyMost(r *http.Request) int64 {
	if r.Method == http.MethodPost && r.URL.Path == api.Base+importPath {
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
		switch {
		case err == nil:
			_ = rc.SetReadDeadline(time.Time{})
			r.Body = io.NopCloser(bytes.NewReader(body))
			next.ServeHTTP(w, r)
			return
		case errors.As(err, new(*http.MaxBytesError)):
			api.NewProblem(http.StatusRequestEntityTooLarge, "the body is too large: the limit is %d bytes", most).Write(w)
		case errors.Is(err, os.ErrDeadlineExceeded):
			sendAway(w)
			api.NewProblem(http.StatusRequestTimeout, "the body did not arrive within %s", s.waits.body).Write(w)
		default:
			sendAway(w)
			api.NewProblem(http.StatusBadRequest, "the body was cut off, or is not encoded as the headers say: %s",
				api.Shorten(err.Error())).Write(w)
		}
	})
}
