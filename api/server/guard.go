package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/controller/seam"
)

// straight refuses a path that is not what it says: with "..", "." or nothing between two
// slashes. A redirect to where it leads would answer another question than was asked. What is
// percent-encoded is part of a name, and a route's to judge.
func straight(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.URL.EscapedPath()
		clean := path.Clean(asked)
		if clean != "/" && strings.HasSuffix(asked, "/") {
			clean += "/"
		}
		if asked != "" && asked != clean {
			api.NewProblem(http.StatusNotFound, "there is no %s; no name is empty, \".\" or \"..\"", api.Shorten(asked)).Write(w)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// door is how somebody came in.
type door string

const (
	doorSocket door = "socket"
	doorPage   door = "page"  // with the cookie
	doorToken  door = "token" // with the header
)

type doorKey struct{}

// entered notes by which door a request came in.
func entered(by door, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), doorKey{}, by)))
	})
}

// actor is who asks, as the journal will tell it. Whoever has the token or the user id is
// taken for the person whose daemon this is, but who runs in a session of ours is its agent,
// and who cannot be looked at may be any of them.
func (s *Server) actor(ctx context.Context) seam.Actor {
	switch is := callerIn(ctx); {
	case is.session != "":
		return seam.Actor{Kind: "agent", ID: is.agent()}
	case is.unknown():
		return seam.Actor{Kind: "agent", ID: nobodySeen}
	}
	id := s.opts.User
	switch ctx.Value(doorKey{}) {
	case doorPage:
		id += " (Mission Control)"
	case doorToken:
		id += " (token)"
	}
	return seam.Actor{Kind: "human", ID: id}
}

const (
	// CookieName is the cookie that the page shows. Cookies do not know ports, so beside it
	// stands one with our port in its name: two daemons on one machine do not log each other out.
	CookieName = "fairlead_token"

	cookiesMax = 8 // with our name; more of them is somebody trying

	apiPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)

// headers are what every answer carries, whatever it is. A bug in one request ends that
// request: it is logged with all that is known of it, and the daemon goes on.
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
					panic(http.ErrAbortHandler) // a cut answer must not look like a whole one
				}
				api.NewProblem(http.StatusInternalServerError, "this is a bug in fairlead; its log says more").Write(w)
			}
		}()
		next.ServeHTTP(noted, r)
	})
}

// begun remembers whether anything of an answer was sent.
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

// guard lets in who is addressed to us, comes from no other site and knows the token.
func (s *Server) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.addressed(r) {
			sendAway(w)
			api.NewProblem(http.StatusMisdirectedRequest, "this is fairlead, and it is not called %q; use the address that `fairlead up` printed", api.Shorten(r.Host)).Write(w)
			return
		}
		if cross.Check(r) != nil || !fromHere(r) {
			sendAway(w)
			api.NewProblem(http.StatusForbidden, "a page of another site asked; only fairlead's own page and programs with the token may").Write(w)
			return
		}
		if given, ok := loginToken(r); ok {
			s.login(w, r, given)
			return
		}
		by, ok := s.known(r)
		if !ok {
			s.unknown(w, r)
			return
		}
		entered(by, next).ServeHTTP(w, r)
	})
}

// sendAway closes the connection after the answer: who is not let in keeps no place that
// somebody with the token could want.
func sendAway(w http.ResponseWriter) { w.Header().Set("Connection", "close") }

// addressed says whether the request names us. A name that somebody else made point to
// loopback (DNS rebinding) is not ours.
func (s *Server) addressed(r *http.Request) bool {
	host, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(r.Host, "["), "]"), "80"
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	ours := local != nil && port == strconv.Itoa(local.Port)
	for _, known := range s.hosts {
		if strings.EqualFold(known, net.JoinHostPort(host, port)) || ours && strings.EqualFold(known, host) {
			return true
		}
	}
	if !ours {
		return false
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Zone() == "" && ip.Unmap().IsLoopback()
}

// fromHere says whether a request comes from our own page or from no page at all. Another
// program's page on this machine counts as the same site to a browser, so a site is not
// enough. Opening the page by a link is harmless wherever the link stands.
func fromHere(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" || !strings.EqualFold(u.Host, r.Host) {
			return false
		}
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return true
	default:
		return r.Method == http.MethodGet && r.URL.Path == "/" &&
			r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	}
}

// known says by which door somebody with the token comes in.
func (s *Server) known(r *http.Request) (door, bool) {
	if given := r.Header.Get("Authorization"); given != "" {
		scheme, token, _ := strings.Cut(given, " ")
		return doorToken, strings.EqualFold(scheme, "Bearer") && s.isToken(strings.TrimSpace(token))
	}
	tried := 0
	for _, c := range r.Cookies() {
		if !strings.HasPrefix(c.Name, CookieName) {
			continue
		}
		if tried++; tried > cookiesMax {
			break
		}
		if s.isToken(c.Value) {
			return doorPage, true
		}
	}
	return "", false
}

// isToken compares in a time that tells nothing about how much of it was right.
func (s *Server) isToken(given string) bool {
	sum := sha256.Sum256([]byte(given))
	return subtle.ConstantTimeCompare(sum[:], s.token[:]) == 1 && !s.closed
}

// loginToken is the token in the link that `fairlead up` printed.
func loginToken(r *http.Request) (string, bool) {
	if r.URL.Path != "/" || r.Method != http.MethodGet {
		return "", false
	}
	q := r.URL.Query()
	return q.Get("token"), q.Has("token")
}

// login makes a cookie of the token, and takes it out of the address bar.
func (s *Server) login(w http.ResponseWriter, r *http.Request, given string) {
	if !s.isToken(given) {
		sendAway(w)
		writePage(w, http.StatusUnauthorized, pageOld)
		return
	}
	names := []string{CookieName}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		names = append(names, CookieName+"_"+strconv.Itoa(local.Port))
	}
	for _, name := range names {
		http.SetCookie(w, &http.Cookie{Name: name, Value: given, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	}
	h := w.Header()
	h.Set("Location", "/")
	h.Set("Content-Length", "0")
	w.WriteHeader(http.StatusSeeOther)
}

// unknown answers who has no token: a person with a page, a program with a problem.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	sendAway(w)
	w.Header().Set("WWW-Authenticate", `Bearer realm="fairlead"`)
	if r.URL.Path == "/" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		writePage(w, http.StatusUnauthorized, pageStranger)
		return
	}
	api.NewProblem(http.StatusUnauthorized, "fairlead does not know you: send `Authorization: Bearer TOKEN` with the token of the link that `fairlead up` printed, or use the command line, which needs none").Write(w)
}
