package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	addressMax     = 8192             // bytes of a webhook's address; servers accept no longer ones
	hopsMax        = 3                // redirects to follow; more are a loop
	answerBytesMax = 4 << 10          // of an answer; it is read only so that the server is not cut off
	headerBytesMax = 64 << 10         // of its headers
	askedWaitMax   = 30 * time.Second // longest wait that an answer may request, because other notices are queued behind it
)

// webhook posts notices to an address.
type webhook struct {
	address *url.URL
	client  *http.Client
}

var errAddress = errors.New("notify.webhook is not an address that begins with http:// or https:// and names a host; " +
	"correct it in fairlead.yaml, or the variable that it refers to") // url.Parse's error would show the address

func newWebhook(address string) (*webhook, error) {
	u, err := url.Parse(address)
	if err != nil || len(address) > addressMax || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errAddress
	}
	u.Fragment, u.RawFragment = "", ""
	return &webhook{address: u, client: &http.Client{
		CheckRedirect: onlyWithin,
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment, // a proxy in the environment is used
			DialContext:            (&net.Dialer{Timeout: tryMax}).DialContext,
			TLSHandshakeTimeout:    tryMax,
			MaxResponseHeaderBytes: headerBytesMax,
			DisableKeepAlives:      true, // notices are rare: no connection is kept open
			DisableCompression:     true,
		},
	}}, nil
}

// onlyWithin allows redirects only within the address's own host, and only those that post again. Otherwise
// the notice would go to a host that is not configured.
func onlyWithin(next *http.Request, before []*http.Request) error {
	first, code := before[0].URL, next.Response.StatusCode
	same := next.URL.Scheme == first.Scheme && strings.EqualFold(next.URL.Host, first.Host)
	safer := first.Scheme == "http" && next.URL.Scheme == "https" && strings.EqualFold(next.URL.Hostname(), first.Hostname())
	again := code == http.StatusTemporaryRedirect || code == http.StatusPermanentRedirect
	if len(before) > hopsMax || !again || !same && !safer {
		return http.ErrUseLastResponse
	}
	return nil
}

// name is the host only.
func (w *webhook) name() string { return harmless(w.address.Hostname(), idMax) }

func (w *webhook) tell(ctx context.Context, n Notice) error {
	body, err := json.Marshal(n)
	if err != nil {
		panic("notify: a notice is not JSON: " + err.Error()) // it holds only texts and a time
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.address.String(), bytes.NewReader(body))
	if err != nil {
		return &trouble{cause: "no request can be made of the address", wayOut: "correct notify.webhook"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "fairlead")
	res, err := w.client.Do(req)
	if err != nil {
		return unreached(err)
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, answerBytesMax) // the content does not matter
	return verdict(res.StatusCode, res.Header.Get("Retry-After"))
}

// verdict decides by the status code whether a notice was delivered.
func verdict(code int, retryAfter string) error {
	said := fmt.Sprintf("it answers %d", code)
	switch {
	case code >= 200 && code <= 299:
		return nil
	case code >= 300 && code <= 399:
		return &trouble{cause: said + ", and redirects are not followed", wayOut: "set notify.webhook to the address that it redirects to"}
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return &trouble{cause: said, wayOut: "see what is wrong over there", again: true, wait: askedWait(retryAfter)}
	}
	return &trouble{cause: said, wayOut: "correct notify.webhook, or make a new address over there"}
}

// askedWait parses Retry-After as whole seconds, with an upper bound. Its other form, a date, depends on two
// clocks and is ignored.
func askedWait(header string) time.Duration {
	seconds, err := strconv.ParseUint(header, 10, 32)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, askedWaitMax)
}

// unreached gives the reason why there was no answer. The error itself holds the address and may hold what a
// server sent, so only fixed texts are used.
func unreached(err error) error {
	t := &trouble{cause: "the connection failed", wayOut: "see that the host can be reached from here", again: true}
	var (
		dns     *net.DNSError
		errno   syscall.Errno
		timeout net.Error
		host    x509.HostnameError
		cert    *tls.CertificateVerificationError
		record  tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		t.cause, t.wayOut = "its name leads nowhere", "correct the host in notify.webhook, or see to the network"
	case errors.As(err, &cert), errors.As(err, &host):
		t.cause, t.wayOut, t.again = "its certificate is not one that this system trusts for it", "see to its certificate, or to the clock of this machine", false
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		t.cause, t.wayOut, t.again = "it does not speak TLS there", "correct https, or the port, in notify.webhook", false
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		t.cause = "it did not answer within " + tryMax.String()
	case errors.As(err, &errno):
		t.cause = errno.Error()
	}
	return t
}
