// Package scriptmodel is a model that has no mind: it does what the prompt says, word for word.
//
// Real agent programs want a model to talk to. Here they are given a parrot with a to-do list. A
// line of the prompt that holds `do:` is an item of the list; with each answer the parrot takes the
// next one, and it knows which is next from nothing but the history that the program itself sends
// along. So it remembers nothing, a conversation that was cut off goes on where it was, and a retry
// is answered alike.
//
//	do: write PATH TEXT        do: read PATH        do: bash COMMAND LINE
//	do: mcp NAME {json}        the offered tool whose name ends so, whatever is before it
//	do: tool NAME {json}       exactly that tool
//	do: say TEXT               the last words of the answer; \n is a line's end
//	do: think TEXT             said as a thought, before each answer to this prompt
//	do: slow N MS              N words, MS milliseconds between them
//	do: hold TEXT              TEXT, and then nothing more until the program hangs up or the test
//	                           lets go; then what the next `do: say` says
//	do: error CODE SECONDS     an error of HTTP, with Retry-After where SECONDS are given
//	do: usage IN OUT           what each answer to this prompt is said to have used
//
// It speaks OpenAI's chat completions and responses, Anthropic's messages and Google's generateContent, streamed and in one piece, on a loopback port
// that it chooses. What came is kept for the test to read: the words, the tools that were offered,
// and what was answered.
//
// The one promise: the same request is given the same words, whatever was asked before.
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
)

// Key is what a program has to show. Another one is refused: then it was not the test that gave it.
const Key = "sk-dummy"

// Name is the model that is listed; any other name is answered, too.
const Name = "parrot"

const (
	bodyBytesMax = 32 << 20 // a whole conversation with the descriptions of all tools is some 200 KB
	requestsMax  = 2000     // a program that asks more often in one test goes round in circles
)

// Request is one request as it came, and what was answered.
type Request struct {
	API    string // chat, responses, messages, gemini
	Model  string
	Turns  []Turn
	Tools  []string // names, as offered
	Answer string   // say hello; call write_file {"path":…}; error 429
}

// Turn is one contribution to the conversation.
type Turn struct {
	Role  string // system, developer, user, assistant, tool
	Text  string
	Calls int // of tools, by the assistant
}

// Says reports whether the conversation so far contains this text by this role.
func (r Request) Says(role, text string) bool {
	return slices.ContainsFunc(r.Turns, func(t Turn) bool { return t.Role == role && strings.Contains(t.Text, text) })
}

// Server is the model at its port.
type Server struct {
	URL string // http://127.0.0.1:PORT/v1

	mu       sync.Mutex
	requests []Request
	changed  chan struct{} // closed and made anew with each request
	letGo    chan struct{} // closed by LetGo
	over     chan struct{} // closed at the end: releases all requests that are held
}

// Start opens the model on a port of the loopback; it is gone with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{changed: make(chan struct{}), letGo: make(chan struct{}), over: make(chan struct{})}
	web := httptest.NewServer(s) // 127.0.0.1, and where that is not to be had ::1
	s.URL = web.URL + "/v1"
	t.Cleanup(func() {
		close(s.over)
		web.CloseClientConnections()
		web.Close()
	})
	return s
}

// Requests are those that came so far, in order.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Changed is closed when another request has come. Take it before Requests is read.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// LetGo ends what is held, now and from now on. It may be called once.
func (s *Server) LetGo() { close(s.letGo) }

// keep says false where there are too many.
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

// speaker writes an answer in the words of one API.
type speaker interface {
	whole(answer) any          // in one piece
	stream(*events, answer)    // as it comes
	parse(body []byte) error   // what was asked
	asked() (question, string) // in our words, and the model's name
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
		refuse(w, http.StatusNotFound, "there are /chat/completions, /responses, /messages, /models and :generateContent, not "+r.Method+" "+r.URL.Path)
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
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("more than %d requests: the program goes round in circles", requestsMax))
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
	_ = json.NewEncoder(w).Encode(v) // who has hung up needs no answer
}

func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"type": "scripted_error", "code": status, "message": why}})
}
