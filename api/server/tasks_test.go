package server

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
)

// ofReview reports whether a route takes a person's words about a task.
func ofReview(rt route) bool {
	return slices.ContainsFunc([]string{"/comments", "/comments/{comment}", "/request", "/merge"}, func(end string) bool { return strings.HasSuffix(rt.Path, end) })
}

// tasksAsked is one call of each route for tasks, and the one that tells an agent something.
var tasksAsked = []askedOnce{
	{"get-task-changes", "GET", "/runs/r1/changes", "", `"files" "base"`},
	{"get-task-file", "GET", "/runs/r1/changes/0?from=" + someCommit + "&to=" + someCommit, "", `"rows" "kind":"add"`},
	{"get-task-image", "GET", "/runs/r1/attachments/a.gif", "", "GIF89a"},
	{"list-comments", "GET", "/runs/r1/comments", "", `"comments" "text"`},
	{"add-comment", "POST", "/runs/r1/comments", `{"file":"a.go","line":3,"text":"no"}`, `"comments"`},
	{"change-comment", "POST", "/runs/r1/comments/1", `{"text":"yes"}`, `"text":"yes"`},
	{"remove-comment", "DELETE", "/runs/r1/comments/1", "", `"comments":[]`},
	{"request-task", "POST", "/runs/r1/request", `{"text":"again"}`, `"seq"`},
	{"merge-task", "POST", "/runs/r1/merge", `{}`, `"seq"`},
	{"drop-task", "POST", "/runs/r1/drop", `{}`, `"ref"`},
	{"tell-agent", "POST", "/agents/coder/tell", `{"text":"use v2"}`, `"seq":15 "agent":"coder" "session":"coder-1" "when":"at_once"`},
}

const someCommit = "0123456789012345678901234567890123456789"

func TestTaskRoutes(t *testing.T) {
	t.Parallel()
	const commit = someCommit
	for _, c := range []struct {
		method, path, body string
		status             int
		said               string // the order that it is, or a part of the answer
	}{
		{"GET", "/changes?to=" + commit, "", 200, commit},
		{"GET", "/changes?to=HEAD", "", 422, ""},
		{"GET", "/changes?to=--output%3Dx", "", 422, ""},
		{"GET", "/changes/0?from=" + commit + "&to=" + commit, "", 200, `"kind":"add"`},
		{"GET", "/changes/0", "", 422, ""},
		{"GET", "/changes/-1?from=" + commit + "&to=" + commit, "", 422, ""},
		{"GET", "/attachments/a.gif", "", 200, "GIF89a"},
		{"GET", "/attachments/a.svg", "", 404, ""},
		{"GET", "/attachments/..%2Ftask.json", "", 404, ""},
		{"GET", "/comments", "", 200, `"text":"why?"`},
		{"POST", "/comments", `{"file":"a.go","line":3,"old":true,"text":"no"}`, 200, `"old":true`},
		{"POST", "/comments", `{"file":"a.go","line":-3,"text":"no"}`, 422, ""},
		{"POST", "/comments", `{"file":"a.go","line":3,"text":""}`, 422, ""},
		{"POST", "/comments", `{"text":"no","by":"root"}`, 422, ""},
		{"POST", "/comments", "", 422, ""},
		{"POST", "/comments/1", `{"text":"yes"}`, 200, `"text":"yes"`},
		{"POST", "/comments/0", `{"text":"yes"}`, 422, ""},
		{"POST", "/comments/1", "", 422, ""},
		{"DELETE", "/comments/1", "", 200, `"comments":[]`},
		{"POST", "/request", `{"text":"again","shown":"abc"}`, 200, `human sam: request r1 "again" shown "abc"`},
		{"POST", "/request", `{"txt":"again"}`, 422, ""},
		{"POST", "/merge", `{"shown":"abc"}`, 200, `human sam: merge r1 shown "abc"`},
		{"POST", "/merge", `{"shown":7}`, 422, ""},
		{"POST", "/drop", `{"note":"old"}`, 200, `human sam: drop r1 "old"`},
	} {
		fake := newFake()
		handler := New(Options{Engine: fake, User: "sam"}).SocketHandler()
		req := httptest.NewRequestWithContext(t.Context(), c.method, "http://fairlead"+api.Base+"/runs/r1"+c.path, strings.NewReader(c.body))
		if c.body == "" {
			req.Body = http.NoBody
		}
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, req)
		if got := w.Body.String() + strings.Join(fake.orders, "|"); w.Code != c.status || !strings.Contains(got, c.said) || c.status != 200 && len(fake.orders) > 0 {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, w.Code, got)
		}
	}
}

// An image has its own type, and an answer cannot be taken for a document.
func TestTaskImageHeaders(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	New(Options{Engine: newFake(), User: "sam"}).SocketHandler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://fairlead"+api.Base+"/runs/r1/attachments/a.gif", http.NoBody))
	for header, want := range map[string]string{"Content-Type": "image/gif", "X-Content-Type-Options": "nosniff", "Content-Length": "6", "Cross-Origin-Resource-Policy": "same-origin"} {
		if got := w.Header().Get(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("the policy is %q", policy)
	}
}
