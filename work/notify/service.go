package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"

	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/file"
)

// service tells by a service that the library shoutrrr knows, in a process of its own. The library has no contexts: a
// request to Telegram waits forever, and one to Discord is repeated for minutes. It reads answers without a limit,
// follows redirects, and its errors hold the address. In a process all of that ends with the process, and the daemon
// does not share the library's global HTTP client.
type service struct {
	address string
	scheme  string
	self    func() (string, error) // the program that Intercept belongs to
}

// childWord is the first argument of a process that sends one message.
const childWord = "__notify"

// serviceEnv are the environment variables that the process gets: how to reach the network, and no key.
var serviceEnv = []string{
	"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

const (
	childMax       = 2 * tryMax // for one message: some services need two requests
	childAnswerMax = 4 << 10    // bytes of what the process says
)

// newService checks the address without using the network.
func newService(address string) (*service, error) {
	s := &service{address: address, self: os.Executable}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errAddress
	}
	s.scheme, _, _ = strings.Cut(strings.ToLower(u.Scheme), "+")
	if s.scheme == "logger" { // it sends nothing
		return nil, errAddress
	}
	if s.scheme == "matrix" { // the library signs in when it reads the address
		return s, nil
	}
	if _, err := locate(address); err != nil {
		return nil, errAddress //nolint:nilerr // the error holds the address
	}
	return s, nil
}

// locate has the library read the address. A panic is a bad address: the library has parsers that were not made for
// hostile input.
func locate(address string) (is sender, err error) {
	defer func() {
		if recover() != nil {
			err = errAddress
		}
	}()
	return (&router.ServiceRouter{}).Locate(address)
}

// Kind is the scheme only.
func (s *service) Kind() string { return s.scheme }

func (s *service) Each() bool { return false }

// order is what the process is to send. It goes over a pipe, because arguments and environment can be read by others.
type order struct {
	Address string `json:"address"`
	Title   string `json:"title"`
	Body    string `json:"body"`
	Link    string `json:"link"`
}

// answer is the result.
type answer struct {
	Sent   bool          `json:"sent"`
	Cause  string        `json:"cause,omitempty"`
	WayOut string        `json:"way_out,omitempty"`
	Again  bool          `json:"again,omitempty"`
	Wait   time.Duration `json:"wait,omitempty"`
}

// Tell starts a process that sends the message, and waits for it.
func (s *service) Send(ctx context.Context, m Message) *notice.Failure {
	self, err := s.self()
	if err != nil {
		return &notice.Failure{Cause: "the program of Fairlead is not known", WayOut: "start Fairlead by its full path"}
	}
	order := encode.JSON(order{Address: s.address, Title: m.title(), Body: m.body(), Link: Link(m.Base, &m.Listed[0])})
	ctx, cancel := context.WithTimeout(ctx, childMax)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, childWord) //nolint:gosec // this program
	cmd.Stdin = bytes.NewReader(order)
	out := file.Capped{Max: childAnswerMax}
	cmd.Stdout = &out
	cmd.WaitDelay = killDelay
	cmd.Dir = "/"
	cmd.Env = environ(serviceEnv)
	err = cmd.Run()
	var a answer
	switch {
	case ctx.Err() != nil:
		return &notice.Failure{
			Cause:  s.scheme + " did not answer within " + childMax.String(),
			WayOut: "see that the service can be reached from here", Again: true,
		}
	case err != nil || json.Unmarshal(out.Bytes(), &a) != nil:
		return &notice.Failure{
			Cause:  "the process that sends to " + s.scheme + " failed",
			WayOut: "run `fairlead doctor`; if it repeats, report it", Again: true,
		}
	case a.Sent:
		return nil
	}
	return &notice.Failure{Cause: a.Cause, WayOut: a.WayOut, Again: a.Again, Wait: min(max(0, a.Wait), askedWaitMax)}
}

// Intercept sends a message, and does not return, if this process was started for that. Call it first in main.
func Intercept() {
	if len(os.Args) == 2 && os.Args[1] == childWord {
		os.Exit(child(os.Stdin, os.Stdout))
	}
}

// child sends the message on in and writes the result to out.
func child(in io.Reader, out io.Writer) int {
	var o order
	if err := json.NewDecoder(io.LimitReader(in, 64<<10)).Decode(&o); err != nil {
		return 2
	}
	a := answer{Sent: true}
	if failed := send(o); failed != nil {
		a = answer{Cause: failed.Cause, WayOut: failed.WayOut, Again: failed.Again, Wait: failed.Wait}
	}
	if json.NewEncoder(out).Encode(a) != nil {
		return 1
	}
	return 0
}

// untitled are the services whose parameters have no title, so that it is put before the text.
var untitled = []string{"googlechat", "hangouts", "rocketchat", "signal", "wecom", "pagerduty", "notifiarr", "ifttt", "generic"}

// compose fits a message to a service: the parameters and the text.
func compose(scheme string, o order) (params map[string]string, text string) {
	params = map[string]string{"title": o.Title}
	switch {
	case slices.Contains(untitled, scheme):
		return nil, o.Title + "\n" + o.Body
	case scheme == "telegram":
		return map[string]string{"preview": "No", "parsemode": "None"}, o.Title + "\n" + o.Body // a title would turn on HTML
	case scheme == "discord":
		params["splitlines"] = "No"
		params["json"] = "No"
	case scheme == "ntfy":
		if o.Link != "" {
			params["click"] = o.Link
		}
	case scheme == "smtp":
		params["usehtml"] = "No"
	}
	return params, o.Body
}

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
	if w.failed = verdict(res.StatusCode, res.Header.Get("Retry-After")); w.failed != nil &&
		(res.StatusCode == http.StatusTooManyRequests || res.StatusCode < 400 || res.StatusCode >= 500) {
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
	var mail *textproto.Error
	switch {
	case w.failed != nil:
		return w.failed
	case errors.As(err, &mail):
		return &notice.Failure{
			Cause:  fmt.Sprintf("the mail server answers %d", mail.Code),
			WayOut: "see what is wrong over there, and whether sender, recipient and password are right", Again: mail.Code < 500,
		}
	case errors.As(err, new(net.Error)), errors.As(err, new(*net.OpError)):
		return unreached(err)
	}
	return &notice.Failure{
		Cause:  scheme + " did not take the message",
		WayOut: "see that the address is complete and still valid over there",
	}
}
