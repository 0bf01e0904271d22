package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/api/mcp"
	"github.com/fairlead-dev/fairlead/hosts/link"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// These are answered by this daemon. All others are the leader's.
const (
	downPath   = api.Base + "/down"
	leaderPath = api.Base + "/leader"
)

// forward passes requests of programs on this host on to the leader. Only this host says who made them.
type forward struct {
	line  *line
	away  func() string                       // why the leader cannot be reached, and what follows
	down  func(ctx context.Context, now bool) // ends the daemon; now: with its sessions
	none  func() api.Leader                   // since when no leader answers
	other func() *api.OtherConfig             // why this host would not lead; nil: not needed

	noStore func() string // why the server of this host has no store; nil: not needed
}

// ServeHTTP passes a request on.
func (f *forward) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(caller.Once(r.Context()))
	is := caller.IdentityIn(r.Context())
	switch {
	case r.URL.Path == downPath && r.Method == http.MethodPost:
		f.end(w, r)
		return
	case !strings.HasPrefix(r.URL.Path, "/api/") && r.URL.Path != mcp.Path:
		api.NewProblem(http.StatusNotFound, "there is no %s on this host; Mission Control is on the leader's machine",
			api.Shorten(r.URL.Path)).Write(w)
		return
	}
	client, base := f.line.client()
	if r.URL.Path == leaderPath && r.Method == http.MethodGet {
		var is api.Leader
		if client == nil {
			is = f.none()
		}
		if f.other != nil {
			is.OtherConfig = f.other()
		}
		if f.noStore != nil {
			is.NoStore = f.noStore()
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(api.Encode(is))
		return
	}
	if client == nil {
		f.unsent(w, r)
		return
	}
	to, err := url.Parse(base)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	// texts and flags
	said, _ := json.Marshal(wire.Caller{Session: is.Session, Foreign: is.Foreign, Unknown: is.Unknown, Seen: is.Seen, Own: is.Own})
	proxy := httputil.ReverseProxy{
		Transport: client.Transport, // the proxy keeps nothing of a stream back, as its length is not known
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			p.Out.Host = to.Host
			p.Out.Header.Set(wire.CallerField, string(said)) // what the program sent there is gone
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { f.failed(w, r, err) },
	}
	proxy.ServeHTTP(w, r)
}

// failed answers a request whose answer did not come.
func (f *forward) failed(w http.ResponseWriter, r *http.Request, err error) {
	_, unsent := errors.AsType[*link.Away](err)
	switch {
	case r.Context().Err() != nil: // its program has gone
	case unsent || r.Method == http.MethodGet || r.Method == http.MethodHead:
		f.unsent(w, r)
	default:
		api.NewProblem(http.StatusBadGateway,
			"the leader did not answer and may have carried out the request; check before you repeat it: %s (%v)", f.away(), err).Write(w)
	}
}

// unsent answers a request that was not carried out.
func (f *forward) unsent(w http.ResponseWriter, r *http.Request) {
	text := f.away()
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		text += "; nothing was done: run the command again when a leader answers"
	}
	api.NewProblem(http.StatusServiceUnavailable, "%s", text).Write(w)
}

// end stops this daemon. The leader's goes on.
func (f *forward) end(w http.ResponseWriter, r *http.Request) {
	if err := caller.IdentityIn(r.Context()).MayOrder("down", ""); err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	var in struct {
		Now bool `json:"now"`
	}
	if r.ContentLength != 0 {
		if err := wire.Read(r.Body, &in); err != nil { // of a program on this host
			api.NewProblem(http.StatusUnprocessableEntity, "%s", err).Write(w)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(api.Encode(api.Stopping{Stopping: true}))
	f.down(context.WithoutCancel(r.Context()), in.Now)
}

// lastHeard is when the leader last answered.
func (k *leaseKeeper) lastHeard() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.heard
}

// none says since when no leader answers.
func (k *leaseKeeper) none(began time.Time, asOf func() time.Time) (is api.Leader) {
	since := began
	if heard := k.lastHeard(); !heard.IsZero() {
		since = heard
	}
	is.NoLeaderSince = &since
	if asOf == nil {
		return is
	}
	if at := asOf(); !at.IsZero() {
		is.AsOf = &at
	}
	return is
}

// unreached notes why there is no connection.
func (k *leaseKeeper) unreached(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.no = ""
	if p, is := errors.AsType[*wire.Problem](err); is {
		k.no = p.Why
	}
}

// away says that the leader cannot be reached, since when, and what follows.
func (k *leaseKeeper) away(addresses []string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	text := fmt.Sprintf("host %s has no connection to the leader of team %s at %s", k.name, k.team, strings.Join(addresses, ", "))
	if k.no != "" {
		return text + ": " + k.no
	}
	if k.heard.IsZero() {
		return text + " since its daemon started; check that fairlead runs there, and the network"
	}
	text += " since " + k.heard.Format(time.TimeOnly)
	end, held := k.guard.Deadline()
	left := time.Duration(end - k.now()).Round(time.Second)
	switch at := time.Now().Add(left).Format(time.TimeOnly); {
	case !k.runs():
		return text + "; no session runs here"
	case held && left > 0:
		return text + "; the sessions here end at " + at + " unless it comes back"
	default:
		return text + "; the sessions here have ended, and the leader starts new attempts"
	}
}
