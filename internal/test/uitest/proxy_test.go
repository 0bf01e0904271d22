package uitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

var versionFolder = regexp.MustCompile(`^/v/[^/]+/`)

// Proxy forwards requests to the real server. It can refuse a request and change the JSON of an
// answer, for scenarios about answers that a correct server gives only under rare conditions.
type Proxy struct {
	forward  *httputil.ReverseProxy
	mu       sync.Mutex
	refusals map[string]refusal // "POST /channels/quay/skip" → how
	edits    map[string]func(body map[string]any)
	holds    bool // streams are passed on only at their end
}

// refusal refuses the next request, or all of them.
type refusal struct {
	reason string
	all    bool
}

// HoldStreams passes later streams on only at their end, as a buffering proxy does; or no longer.
func (p *Proxy) HoldStreams(hold bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = hold
}

// whole reads its body to the end before it returns anything.
type whole struct {
	io.ReadCloser
	text *bytes.Reader
}

func (w *whole) Read(b []byte) (int, error) {
	if w.text == nil {
		text, err := io.ReadAll(w.ReadCloser)
		if err != nil {
			return 0, err
		}
		w.text = bytes.NewReader(text)
	}
	return w.text.Read(b)
}

func newProxy(server string) *Proxy {
	to := &url.URL{Scheme: "http", Host: server}
	p := &Proxy{refusals: map[string]refusal{}, edits: map[string]func(map[string]any){}}
	p.forward = &httputil.ReverseProxy{
		FlushInterval: -1, // the feed is a stream
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
			r.Out.Header.Del("Accept-Encoding") // so that an answer can be edited
		},
		ModifyResponse: p.edit,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return p
}

// Refuse answers the next request with this method and path with a refusal. Paths are relative to
// /api/v1, and those of the page's parts to the folder of their version.
func (p *Proxy) Refuse(method, path, reason string) {
	p.refuse(method+" "+path, refusal{reason: reason})
}

// RefuseAll answers every request with this method and path with a refusal.
func (p *Proxy) RefuseAll(method, path, reason string) {
	p.refuse(method+" "+path, refusal{reason: reason, all: true})
}

func (p *Proxy) refuse(key string, how refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refusals[key] = how
}

// RefuseAnswer refuses the next answer to a question.
func (p *Proxy) RefuseAnswer(reason string) { p.Refuse("POST", "/questions/*/answer", reason) }

// Edit changes every later answer to GET path. The body is the decoded JSON object.
func (p *Proxy) Edit(path string, change func(body map[string]any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.edits[path] = change
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Method + " " + versionFolder.ReplaceAllString(strings.TrimPrefix(r.URL.Path, "/api/v1"), "/")
	if parts := strings.Split(key, "/"); len(parts) == 4 && parts[1] == "questions" {
		key = parts[0] + "/questions/*/" + parts[3]
	}
	p.mu.Lock()
	how, refused := p.refusals[key]
	if !how.all {
		delete(p.refusals, key)
	}
	p.mu.Unlock()
	if !refused {
		p.forward.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusConflict)
	_ = json.NewEncoder(w).Encode(map[string]any{ // an error means that the page has disconnected
		"title": "Conflict", "status": http.StatusConflict, "detail": key + " is refused",
		"refusal": map[string]any{"subject": key, "event": "asked", "row": "T23", "reason": how.reason},
	})
}

func (p *Proxy) edit(res *http.Response) error {
	p.mu.Lock()
	change := p.edits[strings.TrimPrefix(res.Request.URL.Path, "/api/v1")]
	holds := p.holds
	p.mu.Unlock()
	if holds && strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		res.Body = &whole{ReadCloser: res.Body}
	}
	if change == nil || res.Request.Method != http.MethodGet || res.StatusCode != http.StatusOK {
		return nil
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return fmt.Errorf("read the answer to %s: %w", res.Request.URL, err)
	}
	var body map[string]any
	if err := json.Unmarshal(text, &body); err != nil {
		return fmt.Errorf("decode the answer to %s: %w", res.Request.URL, err)
	}
	change(body)
	if text, err = json.Marshal(body); err != nil {
		return fmt.Errorf("encode the answer to %s: %w", res.Request.URL, err)
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	res.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}
