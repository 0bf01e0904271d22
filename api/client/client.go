package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/peer"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/read/view"
)

// NoDaemon says that no daemon answers for a repository (exit code 6).
type NoDaemon struct {
	Dir  string
	Why  error // the failed attempt
	View bool  // this process is in the view of a session
}

func (n *NoDaemon) Error() string {
	if n.View {
		return "the fairlead daemon of this session does not answer: it is being restarted, or was ended; try again in a moment, and if it stays away, ask the person who runs this team to run `fairlead up`"
	}
	return "no fairlead daemon runs for " + n.Dir + "; start one with `fairlead up`"
}

// Unwrap returns the failed attempt.
func (n *NoDaemon) Unwrap() error { return n.Why }

// Silent says that the daemon lives, and does not answer. Nothing was asked (exit code 6).
type Silent struct {
	Dir     string
	PID     int
	Stopped bool // by a signal or a debugger
}

func (s *Silent) Error() string {
	if s.Stopped {
		return fmt.Sprintf("the fairlead daemon of %s is stopped: `kill -CONT %d` lets it go on, or `fg` in its terminal", s.Dir, s.PID)
	}
	return fmt.Sprintf("the fairlead daemon of %s, process %d, has not answered for %v; see .fairlead/log/daemon.log there, and how busy the machine is. `kill %[2]d` ends it, `fairlead up` starts it again; its sessions go on",
		s.Dir, s.PID, signMax)
}

// Away reports that a request was not carried out, because no daemon answers or it is closing.
func Away(err error) bool {
	var closing *api.Problem
	return errors.As(err, new(*NoDaemon)) || errors.As(err, new(*Silent)) ||
		errors.As(err, &closing) && closing.Status == http.StatusServiceUnavailable
}

// NoAnswer says that the daemon ended while it was asked for a change (exit code 6).
type NoAnswer struct {
	Dir  string
	Runs bool  // a daemon answers now, maybe another one
	Why  error // how the connection ended
	View bool  // this process is in the view of a session
}

func (n *NoAnswer) Error() string {
	if n.Runs {
		return "the connection to the fairlead daemon of " + n.Dir +
			" ended before the answer came, and it may have carried out the request; check before you repeat it"
	}
	if n.View {
		return "the fairlead daemon of this session ended before it answered, and may have carried out the request; check before you repeat it when it answers again"
	}
	return "the fairlead daemon of " + n.Dir +
		" ended before it answered, and may have carried out the request; start it with `fairlead up`, and check before you repeat it"
}

// Unwrap returns how the connection ended.
func (n *NoAnswer) Unwrap() error { return n.Why }

// Refused is a refusal (exit code 3): the state does not allow the request.
type Refused struct{ Refusal table.Refusal }

func (r *Refused) Error() string { return r.Refusal.Error() }

const (
	placeholder   = "http://fairlead" // no name is looked up: the connection is to a socket
	dialWait      = 2 * time.Second
	signWait      = 2 * time.Second  // for a daemon's first sign, until it is looked whether its process is stopped
	signMax       = 20 * time.Second // the same of one that is not stopped: the machine may be busy
	problemBytes  = 1 << 20          // the part of a problem that is read
	idleMax       = time.Minute      // for an idle connection; shorter than the server's own limit
	responseBytes = 64 << 20         // of any other answer; a longer one is an error
)

// Client sends requests to the daemon of a repository over its socket. It is safe for concurrent
// use. Make it with Dial. Its own methods are about agents and the daemon; each field has those of
// one other concern. What the command line does not ask has no method: Get and Post ask for it.
type Client struct {
	Channels  Channels
	Crew      Crew
	Questions Questions
	Runs      Runs
	Logins    Logins

	dir    string
	daemon workspace.Daemon
	http   *http.Client
	at     string // the moment that is read; empty: now
}

// Dial finds the daemon of a repository, and checks that a process answers and belongs to this user.
// The error is a *NoDaemon if there is none, and a *Silent if it gives no sign.
func Dial(dir string) (*Client, error) {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	c := (&Client{dir: dir}).divided()
	c.http = &http.Client{
		Transport:     &http.Transport{DialContext: c.DialContext, MaxIdleConns: 4, IdleConnTimeout: idleMax},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	conn, err := c.DialContext(context.Background(), "", "")
	if err != nil {
		return nil, err
	}
	conn.Close()
	if c.daemon, err = c.find(); err == nil && c.daemon.PID > 0 {
		err = c.greet()
	}
	return c, err
}

// greet waits for a sign that the daemon reads what it is asked. A fault that is no silence is met again, by the first request.
func (c *Client) greet() error {
	ctx, cancel := context.WithTimeout(context.Background(), signMax)
	defer cancel()
	isStopped := func() bool { return shim.LifeOf(c.daemon.PID, 0) == shim.Stopped }
	defer time.AfterFunc(signWait, func() {
		if isStopped() {
			cancel()
		}
	}).Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodOptions, placeholder, nil)
	if err != nil {
		return err
	}
	req.URL.Opaque = "*" // Go's server answers that by itself
	if resp, err := c.http.Do(req); err == nil {
		resp.Body.Close()
	} else if ctx.Err() != nil {
		return &Silent{Dir: c.dir, PID: c.daemon.PID, Stopped: isStopped()}
	}
	return nil
}

// divided sets the fields for the concerns.
func (c *Client) divided() *Client {
	c.Channels, c.Crew, c.Questions, c.Runs, c.Logins = Channels{c}, Crew{c}, Questions{c}, Runs{c}, Logins{c}
	return c
}

// AsOf returns a client that reads the team as it was at a moment: the number of a change, or a time as in RFC 3339. It
// changes nothing.
func (c *Client) AsOf(moment string) *Client {
	return (&Client{dir: c.dir, daemon: c.daemon, http: c.http, at: moment}).divided()
}

// ReadFrom returns a client that sends requests to a handler in this process instead of a daemon.
// Orders fail with a *NoDaemon. The handler is a Server's SocketHandler.
func ReadFrom(dir string, handler http.Handler) *Client {
	return (&Client{dir: dir, http: &http.Client{Transport: inProcess{handler}}}).divided()
}

// inProcess is a transport to a handler in this process. It streams: RoundTrip returns as soon as
// the handler has written the headers.
type inProcess struct{ handler http.Handler }

// errAborted is how a request to a handler in this process ends that the handler has given up.
var errAborted = errors.New("the answer was not completed, which is a bug in fairlead")

// RoundTrip implements http.RoundTripper. A panic of the handler ends only its request, as in a daemon.
func (t inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	body, in := io.Pipe()
	w := &piped{header: http.Header{}, body: in, began: make(chan int, 1)}
	asked := req.Clone(ctx)
	asked.RequestURI = req.URL.RequestURI()
	if asked.Body == nil {
		asked.Body = http.NoBody
	}
	aborted := make(chan error, 1)
	go func() {
		defer cancel()
		defer asked.Body.Close()
		if err := serveOne(t.handler, w, asked); err != nil {
			aborted <- err
			_ = in.CloseWithError(err) // closing a pipe never fails
			return
		}
		w.WriteHeader(http.StatusOK) // the handler may have written nothing
		_ = in.Close()
	}()
	select {
	case err := <-aborted:
		return nil, err
	case code := <-w.began:
		return &http.Response{
			Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: w.sent, Body: closing{body, cancel}, ContentLength: -1, Request: req,
		}, nil
	case <-req.Context().Done():
		_ = body.Close() // closing a pipe never fails
		return nil, req.Context().Err()
	}
}

// serveOne has a handler answer one request. The error is errAborted if the handler panicked; the server's handler logs a bug before it
// panics with http.ErrAbortHandler.
func serveOne(h http.Handler, w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		switch bug := recover(); bug {
		case nil:
		case http.ErrAbortHandler:
			err = errAborted
		default:
			err = fmt.Errorf("%w: %v", errAborted, bug)
		}
	}()
	h.ServeHTTP(w, r)
	return nil
}

// closing ends the request when the response body is closed.
type closing struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c closing) Close() error {
	c.cancel()
	return c.ReadCloser.Close()
}

// piped is a ResponseWriter that passes the answer on as a stream.
type piped struct {
	header, sent http.Header
	body         *io.PipeWriter
	began        chan int
}

func (w *piped) Header() http.Header { return w.header }

func (w *piped) WriteHeader(code int) {
	if w.sent == nil {
		w.sent = w.header.Clone()
		w.began <- code
	}
}

func (w *piped) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

// Flush implements http.Flusher. Every write is passed on at once, so there is nothing to flush.
func (w *piped) Flush() { w.WriteHeader(http.StatusOK) }

// SetWriteDeadline is for http.ResponseController. It does nothing: the reader is in this process.
func (w *piped) SetWriteDeadline(time.Time) error { return nil }

// SetReadDeadline is for http.ResponseController. It does nothing.
func (w *piped) SetReadDeadline(time.Time) error { return nil }

// sessionSocket is the socket of a session in a view of its own to the daemon.
var sessionSocket = "/run/fairlead/socket"

// InView reports whether this process is in a session's view: the folder of the session's socket is mounted there.
func InView() bool {
	socket, err := os.Lstat(sessionSocket)
	if err != nil {
		socket, err = os.Lstat(filepath.Dir(sessionSocket)) // the daemon is being restarted
	} else if socket.Mode().Type() != fs.ModeSocket {
		return false
	}
	above, fault := os.Lstat(filepath.Dir(filepath.Dir(sessionSocket)))
	if err != nil || fault != nil {
		return false
	}
	inner, ok := socket.Sys().(*syscall.Stat_t)
	outer, is := above.Sys().(*syscall.Stat_t)
	return ok && is && inner.Dev != outer.Dev
}

// find reads the daemon's socket path. It does so for every connection, because a restarted daemon
// may have another path.
func (c *Client) find() (workspace.Daemon, error) {
	if InView() {
		return workspace.Daemon{Socket: sessionSocket}, nil
	}
	d, err := workspace.FindDaemon(c.dir)
	if errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*workspace.Unreadable)) {
		return d, &NoDaemon{Dir: c.dir, Why: err}
	}
	if err != nil {
		return d, err
	}
	if !filepath.IsAbs(d.Socket) || !peer.SocketName.MatchString(filepath.Base(d.Socket)) {
		return d, fmt.Errorf("%s names %q as the daemon's socket, which is not a name that fairlead uses; remove that file and run `fairlead up` again",
			filepath.Join(c.dir, ".fairlead", "daemon.json"), d.Socket)
	}
	return d, nil
}

// DialContext opens a connection, and checks the user at the other end before anything is sent.
func (c *Client) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	daemon, err := c.find()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", daemon.Socket)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED):
		return nil, &NoDaemon{Dir: c.dir, Why: err, View: daemon.Socket == sessionSocket}
	case err != nil:
		return nil, fmt.Errorf("connect to the fairlead daemon of %s: %w", c.dir, err)
	}
	if daemon.Socket == sessionSocket {
		return conn, nil // the daemon may be another user's: it has mounted the folder here
	}
	if err := peer.SameUser(conn.(*net.UnixConn)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("connect to the fairlead daemon of %s: %w; nothing was sent", c.dir, err)
	}
	return conn, nil
}

// Daemon describes the daemon that answers.
func (c *Client) Daemon() workspace.Daemon { return c.daemon }

// Close closes idle connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Agents returns the whole team, with evidence collected for this request.
func (c *Client) Agents(ctx context.Context) (view.TeamView, error) {
	return Get[view.TeamView](ctx, c, "/agents", nil)
}

// Why returns one agent with its evidence. For an unknown name the error is a *Problem with status
// 404 and the known names.
func (c *Client) Why(ctx context.Context, agent string) (view.WhyView, error) {
	return Get[view.WhyView](ctx, c, "/agents/"+url.PathEscape(agent), nil)
}

// Command gives an agent an order; it returns when the order is durable. The error is a *Refused if
// the state does not allow it.
func (c *Client) Command(ctx context.Context, verb api.Verb, agent, note string) (api.Commanded, error) {
	return Post[api.Commanded](ctx, c, "/agents/"+url.PathEscape(agent)+"/"+string(verb), api.NoteBody{Note: note})
}

// Hold prevents all starts until Release.
func (c *Client) Hold(ctx context.Context, note string) (api.Held, error) {
	return Post[api.Held](ctx, c, "/hold", api.NoteBody{Note: note})
}

// Unhold lifts the hold.
func (c *Client) Unhold(ctx context.Context, note string) (api.Held, error) {
	return Post[api.Held](ctx, c, "/unhold", api.NoteBody{Note: note})
}

// Down asks the daemon to stop; now ends running sessions.
func (c *Client) Down(ctx context.Context, now bool) (api.Stopping, error) {
	return Post[api.Stopping](ctx, c, "/down", map[string]bool{"now": now})
}

// Reload makes the daemon load fairlead.yaml again. The error is a *Problem with status 422 if the file has
// faults; the daemon then keeps its configuration.
func (c *Client) Reload(ctx context.Context, want api.ReloadBody) (api.Reloaded, error) {
	return Post[api.Reloaded](ctx, c, "/reload", want)
}

// Leader says whether the daemon knows the present state of the team.
func (c *Client) Leader(ctx context.Context) (api.Leader, error) {
	return Get[api.Leader](ctx, c, "/leader", nil)
}

// Status returns the daemon's status.
func (c *Client) Status(ctx context.Context) (api.Status, error) {
	return Get[api.Status](ctx, c, "/status", nil)
}

// JournalQuery selects a part of the journal.
type JournalQuery struct {
	After  uint64 `query:"after"`  // everything after this sequence
	Limit  int    `query:"limit"`  // the maximum number; 0: one full page
	Entity string `query:"entity"` // only this entity; empty: all
	Agent  string `query:"agent"`  // only what this agent did; empty: all
	Tail   int    `query:"tail"`   // the last changes instead, this many; After is ignored then

	Since time.Time `query:"since"` // zero: no such end
	Until time.Time `query:"until"`
}

// Journal returns one page of the journal.
func (c *Client) Journal(ctx context.Context, q JournalQuery) (api.Page, error) {
	if q.Tail > 0 {
		q.After = 0
	}
	return Get[api.Page](ctx, c, "/journal", queryOf(q))
}

// queryOf encodes the fields of a query that are set, under the names by which the server reads them.
func queryOf(query any) url.Values {
	values, of := url.Values{}, reflect.ValueOf(query)
	for i := range of.NumField() {
		name, field := of.Type().Field(i).Tag.Get("query"), of.Field(i)
		switch value := field.Interface().(type) {
		case time.Time:
			if !value.IsZero() {
				values.Set(name, value.UTC().Format(time.RFC3339Nano))
			}
		case []string:
			if len(value) > 0 {
				values.Set(name, strings.Join(value, ","))
			}
		default:
			if !field.IsZero() {
				values.Set(name, fmt.Sprint(value))
			}
		}
	}
	return values
}

// RawOutput is a part of a session's output, as the agent wrote it.
type RawOutput struct {
	Bytes  []byte
	Offset int64 // of the first byte
	End    int64 // after the last byte
	Open   bool  // more may come
}

// RawOutput reads a session's existing output from an offset; limit 0 means the server's default.
func (c *Client) RawOutput(ctx context.Context, session string, from int64, limit int) (RawOutput, error) {
	v := url.Values{"from": {strconv.FormatInt(from, 10)}}
	if limit > 0 {
		v.Set("limit", strconv.Itoa(limit))
	}
	resp, err := c.ask(ctx, http.MethodGet, "/sessions/"+url.PathEscape(session)+"/output", v, nil, nil)
	if err != nil {
		return RawOutput{}, err
	}
	defer resp.Body.Close()
	out := RawOutput{Open: resp.Header.Get("X-Fairlead-Open") == "true"}
	out.Bytes, err = io.ReadAll(io.LimitReader(resp.Body, responseBytes))
	if err != nil {
		return RawOutput{}, fmt.Errorf("read the output of %s: %w", session, err)
	}
	out.Offset, _ = strconv.ParseInt(resp.Header.Get("X-Fairlead-Offset"), 10, 64) // the server's own number
	out.End = out.Offset + int64(len(out.Bytes))
	return out, nil
}

// Get asks for one thing and reads the answer.
func Get[T any](ctx context.Context, c *Client, path string, query url.Values) (T, error) {
	return call[T](ctx, c, http.MethodGet, path, query, nil)
}

// Post sends a body as JSON and reads the answer.
func Post[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	return call[T](ctx, c, http.MethodPost, path, nil, api.Encode(body))
}

func call[T any](ctx context.Context, c *Client, method, path string, query url.Values, body []byte) (T, error) {
	var v T
	resp, err := c.ask(ctx, method, path, query, body, nil)
	if err != nil {
		return v, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, responseBytes)).Decode(&v); err != nil {
		return v, fmt.Errorf("read the daemon's answer: %w; does the daemon have another version?", err)
	}
	return v, nil
}

// ask sends a request and returns the answer, if it is a success.
func (c *Client) ask(ctx context.Context, method, path string, query url.Values, body []byte, header http.Header) (*http.Response, error) {
	target := placeholder + api.Base + path
	if c.at != "" {
		query = maps.Clone(query)
		if query == nil {
			query = url.Values{}
		}
		query.Set("at", c.at)
	}
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(req.Header, header)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.unreached(ctx, method, err)
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusCreated {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, ReadProblem(resp)
}

// unreached explains why no answer arrived. If the connection ended because the daemon ended, no daemon answers now.
func (c *Client) unreached(ctx context.Context, method string, err error) error {
	var none *NoDaemon
	var wrapped *url.Error
	switch {
	case errors.As(err, &none):
		return none
	case errors.As(err, &wrapped):
		err = wrapped.Err // without the placeholder address
	}
	if errors.Is(err, errAborted) { // no daemon was asked
		return fmt.Errorf("read %s: %w", c.dir, err)
	}
	again, gone := c.DialContext(ctx, "", "")
	ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
	switch {
	case gone == nil:
		again.Close()
		if ended && method == http.MethodGet { // another daemon has begun
			return &NoDaemon{Dir: c.dir, Why: err, View: InView()}
		}
		if ended {
			return &NoAnswer{Dir: c.dir, Runs: true, Why: err}
		}
	case errors.As(gone, &none) && method == http.MethodGet:
		return &NoDaemon{Dir: c.dir, Why: err, View: InView()}
	case errors.As(gone, &none):
		return &NoAnswer{Dir: c.dir, Why: err, View: InView()}
	}
	return fmt.Errorf("send a request to the fairlead daemon of %s: %w", c.dir, err)
}

// ReadProblem reads the server's problem document.
func ReadProblem(resp *http.Response) error {
	p := &api.Problem{}
	err := json.NewDecoder(io.LimitReader(resp.Body, problemBytes)).Decode(p)
	if err != nil || p.Detail == "" {
		return api.NewProblem(resp.StatusCode, "the daemon answered %s without a reason", resp.Status)
	}
	p.Status = resp.StatusCode
	if p.Refusal != nil && p.Status == http.StatusConflict {
		return &Refused{Refusal: table.Refusal(*p.Refusal)}
	}
	return p
}
