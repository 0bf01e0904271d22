// Package scriptmodel is a language model that follows a script in its prompt.
//
// Tests run real agent programs, which need a model. A line of the prompt that contains `do:` is an
// item of a list. Each answer executes the next item. scriptmodel determines the next item only
// from the history that the program sends, so it keeps no state: an interrupted conversation
// continues where it was, and a retry gets the same answer.
//
//	do: write PATH TEXT        do: read PATH        do: bash COMMAND LINE
//	do: mcp NAME {json}        the offered tool whose name ends with NAME
//	do: tool NAME {json}       the tool with exactly this name; RESULT.FIELD in any item is a field
//	                           of the last tool's result
//	do: say TEXT               the last text of the answer; \n is a line break
//	do: think TEXT             a thought before each answer to this prompt
//	do: slow N MS              N words, MS milliseconds apart
//	do: hold TEXT              TEXT, and then nothing until the program disconnects or the test
//	                           calls LetGo; then the text of the next `do: say`
//	do: error CODE SECONDS     an HTTP error, with Retry-After if SECONDS are given
//	do: usage IN OUT           the reported usage of each answer to this prompt
//
// It serves OpenAI's chat completions and responses, Anthropic's messages and Google's
// generateContent, streamed or whole, on a loopback port that it chooses. It keeps the requests for
// the test: the texts, the offered tools, and the answers.
//
// The one promise: equal requests get equal answers, regardless of earlier ones.
package scriptmodel

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/encode"
)

// Key is the key that a program must send. Another key is refused, because it does not come from
// the test.
const Key = "sk-dummy"

// Name is the listed model. Requests for any other name are answered, too.
const Name = "parrot"

const (
	bodyBytesMax = 32 << 20 // a whole conversation with the descriptions of all tools has some 200 KB
	requestsMax  = 2000     // a program that asks more often in one test is in a loop
)

// Request is one request and its answer.
type Request struct {
	API    string // chat, responses, messages, gemini
	Model  string
	Turns  []Turn
	Tools  []string // names of the offered tools
	Answer string   // say hello; call write_file {"path":…}; error 429
}

// Turn is one contribution to the conversation.
type Turn struct {
	Role  string // system, developer, user, assistant, tool
	Text  string
	Calls int // calls of tools, by the assistant
}

// Says reports whether the conversation so far contains this text by this role.
func (r Request) Says(role, text string) bool {
	return slices.ContainsFunc(r.Turns, func(t Turn) bool { return t.Role == role && strings.Contains(t.Text, text) })
}

// Server is a running model.
type Server struct {
	URL string // http://127.0.0.1:PORT/v1

	mu       sync.Mutex
	requests []Request
	changed  chan struct{} // closed and replaced with each request
	letGo    chan struct{} // closed by LetGo
	over     chan struct{} // closed at the end: releases all held answers
}

// Start starts the model on a loopback port. It stops with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{changed: make(chan struct{}), letGo: make(chan struct{}), over: make(chan struct{})}
	web := httptest.NewServer(s) // 127.0.0.1, or ::1 if that is not available
	s.URL = web.URL + "/v1"
	t.Cleanup(func() {
		close(s.over)
		web.CloseClientConnections()
		web.Close()
	})
	return s
}

// Requests returns the requests so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Changed is closed with the next request. Take it before Requests is read.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// LetGo ends all held answers, now and later. It may be called once.
func (s *Server) LetGo() { close(s.letGo) }

// keep returns false if there are too many requests.
func (s *Server) keep(r Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) >= requestsMax {
		return false
	}
	s.requests = append(s.requests, r)
	close(s.changed)
	s.changed = make(chan struct{})
	return true
}

// speaker reads requests and writes answers of one API.
type speaker interface {
	whole(answer) any          // the whole answer
	stream(*events, answer)    // as a stream
	parse(body []byte) error   // reads a request
	asked() (question, string) // the request and the model's name
	streams() bool
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+Key && r.Header.Get("X-Api-Key") != Key && r.Header.Get("X-Goog-Api-Key") != Key {
		refuse(w, http.StatusUnauthorized, "this model knows one key, "+Key)
		return
	}
	var api string
	var of speaker
	model, method, google := geminiPath(r.URL.Path)
	switch {
	case r.Method == http.MethodPost && google && method == "countTokens":
		reply(w, map[string]any{"totalTokens": tokensIn})
		return
	case r.Method == http.MethodPost && google && strings.HasSuffix(strings.ToLower(method), "generatecontent"):
		api, of = "gemini", &gemini{model: model, sse: method == "streamGenerateContent"}
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		reply(w, map[string]any{"object": "list", "data": []any{map[string]any{"id": Name, "object": "model", "owned_by": "loopback"}}})
		return
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions"):
		api, of = "chat", &chat{}
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/responses"):
		api, of = "responses", &responses{}
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/messages"):
		api, of = "messages", &messages{}
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/messages/count_tokens"):
		reply(w, map[string]any{"input_tokens": tokensIn})
		return
	default:
		refuse(w, http.StatusNotFound,
			"there are /chat/completions, /responses, /messages, /models and :generateContent, not "+r.Method+" "+r.URL.Path)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if err == nil {
		err = of.parse(body)
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	q, model := of.asked()
	a := q.answer()
	if !s.keep(Request{API: api, Model: model, Turns: q.turns, Tools: q.names(), Answer: a.String()}) {
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("more than %d requests: the program is in a loop", requestsMax))
		return
	}
	switch {
	case a.status != 0:
		if a.retryAfter != "" {
			w.Header().Set("Retry-After", a.retryAfter)
		}
		refuse(w, a.status, fmt.Sprintf("scripted error %d", a.status))
	case of.streams():
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-cache")
		of.stream(&events{w: w, gone: r.Context().Done(), over: s.over, letGo: s.letGo}, a)
	default:
		reply(w, of.whole(a))
	}
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"type": "scripted_error", "code": status, "message": why}})
}

// events writes server-sent events until the client disconnects.
type events struct {
	w          http.ResponseWriter
	gone, over <-chan struct{} // the program disconnected; the test has ended
	letGo      <-chan struct{}
}

// send writes one event. Data that is not a text is written as JSON.
func (e *events) send(name string, v any) {
	if name != "" {
		fmt.Fprintf(e.w, "event: %s\n", name)
	}
	text, ok := v.(string)
	if !ok {
		text = string(encode.JSON(v))
	}
	fmt.Fprintf(e.w, "data: %s\n\n", text)
	if f, ok := e.w.(http.Flusher); ok {
		f.Flush()
	}
}

// speak writes the text of an answer in pieces, and reports whether the client is still connected.
func (e *events) speak(a answer, piece func(text string)) bool {
	for i, text := range a.pieces() {
		if i > 0 && !e.wait(a.pause) {
			return false
		}
		piece(text)
	}
	if a.hold {
		select {
		case <-e.letGo:
			if a.after != "" {
				piece(a.after)
			}
		case <-e.gone:
			return false
		case <-e.over:
			return false
		}
	}
	return true
}

// wait waits for a duration, and reports whether the client is still connected.
func (e *events) wait(d time.Duration) bool {
	if d == 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-e.gone:
	case <-e.over:
	}
	return false
}
