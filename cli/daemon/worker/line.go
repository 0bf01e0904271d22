package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// errNoLine is the error of what a host asks while it has no connection.
var errNoLine = errors.New("there is no connection to the leader")

// connection is a *link.Conn: one to the leader, for requests of this host.
type connection interface {
	Client() (client *http.Client, base string)
	Done() <-chan struct{}
	RenewCertificate(ctx context.Context, id *ca.Identity) error
}

// line has the present connection to the leader, if there is one.
type line struct {
	came chan struct{} // capacity 1: there is a new connection

	certified time.Time // the last try

	mu    sync.Mutex
	now   connection
	since time.Time // when it began
}

// answersWithin is how long a connection stays on which no renewal is taken: two renewals and some time.
const answersWithin = 12 * time.Second

const certifyEvery = time.Hour // a third of a certificate's year is left at the first try

func (l *line) up(c connection) {
	l.mu.Lock()
	l.now, l.since = c, time.Now()
	l.mu.Unlock()
	l.signal()
}

// drop ends a connection on which the leader has not answered for long, because another host may lead. heard is when it last answered.
// A leader that says that it may have been replaced is left sooner.
func (l *line) drop(heard time.Time, says error) {
	c := l.at()
	l.mu.Lock()
	since := l.since
	l.mu.Unlock()
	late := time.Since(since) > answersWithin && time.Since(heard) > answersWithin
	if p, is := errors.AsType[*wire.Problem](says); is && p.Code == wire.Busy && time.Since(heard) > time.Duration(host.LeaderSilence) {
		late = true
	}
	if closing, is := c.(io.Closer); is && late {
		_ = closing.Close() // it has no error
	}
}

func (l *line) signal() {
	select {
	case l.came <- struct{}{}:
	default:
	}
}

func (l *line) reachable() bool { return l.at() != nil }

// at is nil if there is no connection.
func (l *line) at() connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		return nil
	}
	select {
	case <-l.now.Done():
		return nil
	default:
		return l.now
	}
}

// client is nil if there is no connection.
func (l *line) client() (*http.Client, string) {
	if c := l.at(); c != nil {
		return c.Client()
	}
	return nil, ""
}

// certificate gets the next certificate of the host, when it is time.
func (l *line) certificate(ctx context.Context, id *ca.Identity) error {
	c := l.at()
	if c == nil || !id.RenewalDue() || time.Since(l.certified) < certifyEvery {
		return nil
	}
	l.certified = time.Now()
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	return c.RenewCertificate(ctx, id)
}

func (l *line) renew(ctx context.Context, in wire.RenewIn) (out wire.RenewOut, err error) {
	err = l.post(ctx, wire.RenewRoute, in, &out)
	return out, err
}

func (l *line) grant(ctx context.Context, in wire.GrantIn) (out host.Grant, err error) {
	err = l.post(ctx, wire.GrantRoute, in, &out)
	return out, err
}

// post sends one request of the host itself.
func (l *line) post(ctx context.Context, route string, in, out any) error {
	client, base := l.client()
	if client == nil {
		return errNoLine
	}
	text, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+route, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	if err := wire.Check(answer); err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := wire.ReadAnswer(answer, out); err != nil {
		return fmt.Errorf("the leader's answer: %w", err)
	}
	return nil
}
