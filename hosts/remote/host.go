package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/internal/retry"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// Dial waits for the connection of a host, and returns what sends requests on it and the beginning of their addresses. It
// fails when ctx ends, or if the host cannot come back.
type Dial func(ctx context.Context) (client *http.Client, base string, err error)

// Host is another host of the team, for its leader.
type Host struct {
	Name string
	Dial Dial

	// Gone returns a channel that is closed when the host of a session is lost and the session may run elsewhere, or when
	// the session is released.
	Gone func(session string) <-chan struct{}

	Log *slog.Logger
}

const (
	againFirst = 20 * time.Millisecond // until a request is sent again; doubles up to againMost
	againMost  = 2 * time.Second       // the connection is there, but breaks each time
)

func pauses() retry.Pauses { return retry.Pauses{First: againFirst, Most: againMost} }

// Lost is the error of a request about a session whose host was lost.
type Lost struct{ Host string }

func (l *Lost) Error() string { return "host " + l.Host + " was lost" }

// StartOn starts a session's process at most once. The error is *spawn.AlreadyStarted if it was started before, perhaps by an
// attempt of this call whose answer did not arrive: then it is to be adopted.
func (h *Host) StartOn(ctx context.Context, in wire.StartIn, session string) (sessionhost.Process, error) {
	ctx, stop := until(ctx, h.Gone(session), &Lost{h.Name})
	defer stop()
	var status wire.Status
	err := h.ask(ctx, request{session: session, method: http.MethodPost, route: wire.SessionRoute, in: in}, &status)
	if err != nil {
		return nil, err
	}
	return h.follow(session, in.Epoch, status), nil
}

// Adopt finds the outcome of a session that may have been started on the host.
func (h *Host) Adopt(ctx context.Context, session string, epoch uint64) (sessionhost.Process, sessionhost.Found, error) {
	ctx, stop := until(ctx, h.Gone(session), &Lost{h.Name})
	defer stop()
	var out wire.AdoptOut
	err := h.ask(ctx, request{session: session, method: http.MethodPost, route: wire.AdoptRoute, in: wire.AdoptIn{Epoch: epoch}}, &out)
	if isLost(err) {
		return h.follow(session, epoch, wire.Status{}), sessionhost.Lost, nil
	}
	if err != nil || out.Status == nil {
		return nil, out.Found, h.notAdopted(err, session, epoch)
	}
	return h.follow(session, epoch, *out.Status), out.Found, nil
}

// notAdopted makes the host's answer that it has not adopted a session the error for it. Others stay as they are.
func (h *Host) notAdopted(err error, session string, epoch uint64) error {
	if p, is := errors.AsType[*wire.Problem](err); !is || p.Code != wire.OtherProtocol {
		return err
	}
	return &sessionhost.NotAdopted{Why: "on host " + h.Name + ": " + err.Error(), End: func(ctx context.Context, grace time.Duration) error {
		in := wire.EndIn{GraceMS: ceilMillis(grace), Ordered: true}
		return h.ask(ctx,
			request{session: session, method: http.MethodPost, route: wire.EndRoute, epoch: epoch, in: in, gone: h.Gone(session)},
			&nothing{})
	}}
}

// EndedLate waits for the end of a session that was begun under a lease that does not count any longer, and says how it ended. The
// error is a *wire.Problem with the code NotHere if the host has begun none under this lease.
func (h *Host) EndedLate(ctx context.Context, token host.Token, epoch uint64) (ending session.Exit, err error) {
	var is wire.LeaseOut
	if err := h.ask(ctx, request{session: token.Session, method: http.MethodGet, route: wire.LeaseRoute}, &is); err != nil {
		return ending, err
	}
	if is.Token != token {
		return ending, &wire.Problem{Code: wire.NotHere, Why: "it was begun under another lease"}
	}
	err = h.ask(ctx, request{session: token.Session, method: http.MethodGet, route: wire.EndedRoute, epoch: epoch}, &ending)
	return ending, err
}

// Forget lets the host forget a session that has ended.
func (h *Host) Forget(ctx context.Context, session string, epoch uint64) error {
	return h.ask(ctx, request{session: session, method: http.MethodPost, route: wire.AckRoute, epoch: epoch}, &nothing{})
}

// Output reads a session's output from an offset on, to its current end.
func (h *Host) Output(ctx context.Context, session string, offset int64) (io.ReadCloser, error) {
	return h.output(ctx, request{session: session}, offset)
}

// request is one that may be sent several times.
type request struct {
	session string
	method  string
	route   string
	query   string
	epoch   uint64 // 0: the request does not depend on it
	in      any
	gone    <-chan struct{} // once closed, the host is not waited for if it does not answer; nil: it is
}

// ask sends a request until it is answered.
func (h *Host) ask(ctx context.Context, r request, out any) error {
	return h.send(ctx, r, func(answer *http.Response) error {
		defer answer.Body.Close()
		return wire.ReadAnswer(answer, out)
	})
}

// send sends a request until take has taken its answer, or the answer is an error, or ctx ends.
func (h *Host) send(ctx context.Context, r request, take func(*http.Response) error) error {
	waiting, stop := until(ctx, r.gone, &Lost{h.Name})
	defer stop()
	body, err := h.body(r)
	if err != nil {
		return err
	}
	for again, warned := pauses(), false; ; {
		client, base, err := h.Dial(waiting)
		if err != nil {
			return reason(waiting, err)
		}
		if err = h.once(ctx, client, base, r, body, take); err == nil || ctx.Err() != nil {
			return reason(ctx, err)
		}
		if answered(err) {
			return err
		}
		if !warned {
			warned = true
			h.Log.Warn("a request to a host got no answer; it is sent again until it does", "host", h.Name, "route", r.route, "session",
				r.session, "error", err)
		}
		if !again.Rest(waiting) {
			return reason(waiting, err)
		}
	}
}

func (h *Host) body(r request) ([]byte, error) {
	if r.in == nil {
		return nil, nil
	}
	body, err := json.Marshal(r.in)
	if err == nil && len(body) > wire.BodyMax {
		err = &spawn.CannotStart{Why: fmt.Sprintf("the request to host %s has %d bytes, and at most %d may be sent", h.Name, len(body),
			wire.BodyMax)}
	}
	return body, err
}

// reason is why ctx ended, or the error if it has not.
func reason(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (h *Host) once(ctx context.Context, client *http.Client, base string, r request, body []byte, take func(*http.Response) error) error {
	to := base + strings.Replace(r.route, "{id}", url.PathEscape(r.session), 1) + r.query
	q, err := http.NewRequestWithContext(ctx, r.method, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if r.epoch != 0 {
		q.Header.Set(wire.EpochField, strconv.FormatUint(r.epoch, 10))
	}
	answer, err := client.Do(q) //nolint:bodyclose // take closes it, or Check
	if err != nil {
		return err
	}
	if err := wire.Check(answer); err != nil {
		return err
	}
	return take(answer)
}

// answered reports whether an error is what the host answered, and not one of the connection.
func answered(err error) bool {
	if p, is := errors.AsType[*wire.Problem](err); is {
		return p.Code != wire.Busy
	}
	_, started := errors.AsType[*spawn.AlreadyStarted](err)
	_, cannot := errors.AsType[*spawn.CannotStart](err)
	return started || cannot || isFenced(err)
}

func isFenced(err error) bool {
	_, is := errors.AsType[*sessionhost.Fenced](err)
	return is
}

// until returns a context that also ends when over is closed, because of cause.
func until(ctx context.Context, over <-chan struct{}, cause error) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if over != nil {
		go func() {
			select {
			case <-over:
				cancel(cause)
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}
