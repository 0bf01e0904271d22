package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/textproto"
	"sync"

	"github.com/nicholas-fedor/shoutrrr/pkg/types"

	"github.com/fairlead-dev/fairlead/machine/notice"
)

// sender is a service of the library.
type sender = types.Service

// watched is the transport of the process that sends. It limits answers, follows no redirect, and remembers the first
// failure, because the library's errors hold addresses and what servers said. After a failure it sends nothing more:
// the daemon decides when to try again.
type watched struct {
	next *http.Transport

	mu     sync.Mutex
	failed *notice.Failure
	sent   int
}

var errStopped = errors.New("an earlier request failed")

func (w *watched) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	stopped := w.failed != nil
	w.mu.Unlock()
	if stopped {
		return nil, errors.Join(errStopped, context.Canceled) // the library repeats no request that was cancelled
	}
	res, err := w.next.RoundTrip(req)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed = unreached(err)
		return nil, err
	}
	w.sent++
	if w.failed = verdict(res.StatusCode, res.Header.Get("Retry-After")); w.failed != nil && (res.StatusCode == http.StatusTooManyRequests || res.StatusCode < 400 || res.StatusCode >= 500) {
		res.Body.Close() // the status has decided; some services would read the body, wait and ask again
		return nil, errors.Join(errStopped, context.Canceled)
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(res.Body, serviceAnswerMax), res.Body}
	return res, nil
}

const serviceAnswerMax = 1 << 20 // bytes of an answer; services answer with a few kilobytes

// send sends one message in this process, whose global HTTP client it changes.
func send(o order) (failed *notice.Failure) {
	w := &watched{next: transport()}
	client := &http.Client{Transport: w, Timeout: tryMax}
	http.DefaultTransport, http.DefaultClient = w, client
	defer func() {
		if recover() != nil { // what the library says may hold the address
			failed = &notice.Failure{Cause: "the library for services failed", WayOut: "see that the address is complete"}
		}
	}()
	s, err := newService(o.Address)
	if err != nil {
		return &notice.Failure{Cause: "the address is not one of a service", WayOut: "correct the address"}
	}
	is, err := locate(o.Address)
	switch {
	case err != nil && w.failed != nil:
		return w.failed
	case err != nil:
		return &notice.Failure{Cause: "the address is not one of a service", WayOut: "correct the address"}
	}
	if own, ok := is.(interface{ SetHTTPClient(client *http.Client) }); ok {
		own.SetHTTPClient(client)
	}
	if own, ok := is.(interface{ GetHTTPClient() *http.Client }); ok {
		if c := own.GetHTTPClient(); c != nil {
			c.Transport = w
		}
	}
	if s.scheme == "smtp" {
		o.Title = mime.QEncoding.Encode("utf-8", o.Title)
	}
	params, text := compose(s.scheme, o)
	p := types.Params(params)
	if err := is.Send(text, &p); err != nil {
		return w.reason(s.scheme, err)
	}
	return w.failed
}

// reason is why a message was not sent.
func (w *watched) reason(scheme string, err error) *notice.Failure {
	w.mu.Lock()
	defer w.mu.Unlock()
	var (
		mail *textproto.Error
		netw net.Error
		op   *net.OpError
	)
	switch {
	case w.failed != nil:
		return w.failed
	case errors.As(err, &mail):
		return &notice.Failure{Cause: fmt.Sprintf("the mail server answers %d", mail.Code), WayOut: "see what is wrong over there, and whether sender, recipient and password are right", Again: mail.Code < 500}
	case errors.As(err, &netw), errors.As(err, &op):
		return unreached(err)
	}
	return &notice.Failure{Cause: scheme + " did not take the message", WayOut: "see that the address is complete and still valid over there"}
}
