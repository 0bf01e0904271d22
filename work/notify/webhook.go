package notify

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
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

	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/internal/encode"
)

const (
	hopsMax        = 3                // redirects to follow; more are a loop
	answerBytesMax = 4 << 10          // of an answer; it is read only so that the server is not cut off
	headerBytesMax = 64 << 10         // of its headers
	askedWaitMax   = 30 * time.Minute // longest wait that an answer may request
)

// webhook posts notices to an address, for a program.
type webhook struct {
	address *url.URL
	client  *http.Client
}

// newWebhook returns nil if the address names no host.
func newWebhook(u *url.URL) *webhook {
	if u.Hostname() == "" {
		return nil
	}
	u.Fragment, u.RawFragment = "", ""
	return &webhook{address: u, client: &http.Client{CheckRedirect: onlyWithin, Transport: transport()}}
}

// transport limits what a server can do to this process. A proxy in the environment is used.
func transport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: tryMax}).DialContext,
		TLSHandshakeTimeout:    tryMax,
		MaxResponseHeaderBytes: headerBytesMax,
		DisableKeepAlives:      true, // notices are rare: no connection is kept open
		DisableCompression:     true,
	}
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

// Kind is the host only.
func (w *webhook) Kind() string { return harmless(w.address.Hostname(), idMax) }

func (w *webhook) Each() bool { return true }

// posted is the JSON of a notice. Its fields are promised: some may be added, none renamed.
type posted struct {
	Kind            string    `json:"kind"` // step, permission, question, resume; otherwise the event
	Run             string    `json:"run_id"`
	Step            string    `json:"step_id"`
	Workflow        string    `json:"workflow_name"`
	Why             string    `json:"why"`
	Since           time.Time `json:"since"`             // UTC
	ManualInputPath string    `json:"manual_input_path"` // where an answer can be put as a JSON file
	Agent           string    `json:"agent,omitempty"`
	Event           string    `json:"event"`
	Title           string    `json:"title,omitempty"` // of a task
	Link            string    `json:"link,omitempty"`
	More            int       `json:"more,omitempty"` // further notices, which are only counted
}

func postedOf(m Message) posted {
	one := &m.Listed[0]
	return posted{
		Kind: cmp.Or(one.Kind, string(one.Event)), Run: harmless(one.Run, idMax), Step: harmless(one.Step, idMax),
		Workflow: harmless(one.Workflow, wordsMax),
		Why:      harmless(one.Why, wordsMax), Since: one.Since.UTC().Round(0), ManualInputPath: safePath(one.Path),
		Agent: harmless(one.Agent, idMax),
		Event: string(one.Event), Title: harmless(one.Title, wordsMax), Link: Link(m.Base, one), More: m.More,
	}
}

// Tell posts once.
func (w *webhook) Send(ctx context.Context, m Message) *notice.Failure {
	ctx, cancel := context.WithTimeout(ctx, tryMax)
	defer cancel()
	body := encode.JSON(postedOf(m))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.address.String(), bytes.NewReader(body))
	if err != nil {
		return &notice.Failure{Cause: "no request can be made of the address", WayOut: "correct the address"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "fairlead")
	res, err := w.client.Do(req)
	if err != nil {
		return unreached(err)
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, answerBytesMax) // the content does not notice
	return verdict(res.StatusCode, res.Header.Get("Retry-After"))
}

// verdict decides by the status code whether a notice was delivered.
func verdict(code int, retryAfter string) *notice.Failure {
	said := fmt.Sprintf("it answers %d", code)
	switch {
	case code >= 200 && code <= 299:
		return nil
	case code >= 300 && code <= 399:
		return &notice.Failure{Cause: said + ", and redirects are not followed", WayOut: "use the address that it redirects to"}
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return &notice.Failure{Cause: said, WayOut: "see what is wrong over there", Again: true, Wait: askedWait(retryAfter)}
	}
	return &notice.Failure{Cause: said, WayOut: "correct the address, or make a new one over there"}
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
func unreached(err error) *notice.Failure {
	t := &notice.Failure{Cause: "the connection failed", WayOut: "see that the host can be reached from here", Again: true}
	var (
		dns     *net.DNSError
		errno   syscall.Errno
		timeout net.Error
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		t.Cause, t.WayOut = "its name leads nowhere", "correct the host in the address, or see to the network"
	case errors.As(err, new(*tls.CertificateVerificationError)), errors.As(err, new(x509.HostnameError)):
		t.Cause, t.WayOut, t.Again = "its certificate is not one that this system trusts for it",
			"see to its certificate, or to the clock of this machine", false
	case errors.As(err, new(tls.RecordHeaderError)), errors.Is(err, http.ErrSchemeMismatch):
		t.Cause, t.WayOut, t.Again = "it does not speak TLS there", "correct https, or the port, in the address", false
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		t.Cause = "it did not answer within " + tryMax.String()
	case errors.As(err, &errno):
		t.Cause = errno.Error()
	}
	return t
}
