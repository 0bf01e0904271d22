package server

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/read/view"
)

// ofReview reports whether a route takes a person's words about a task.
func ofReview(rt route) bool {
	return slices.ContainsFunc([]string{"/comments", "/comments/{comment}", "/request", "/merge"},
		func(end string) bool { return strings.HasSuffix(rt.Path, end) })
}

// tasksAsked is one call of each route for tasks, and the one that tells an agent something.
var tasksAsked = []askedOnce{
	{"get-task-changes", "GET", "/runs/TASK1/changes", "", `"files" "base":"main" "name":"a.txt"`},
	{"get-task-file", "GET", "/runs/TASK1/changes/0?from=FROM&to=TO", "", `"rows" "kind":"add"`},
	{"get-task-image", "GET", "/runs/TASK1/attachments/a.gif", "", "GIF89a"},
	{"add-comment", "POST", "/runs/TASK1/comments", `{"file":"a.txt","line":1,"text":"no"}`, `"comments" "text":"no"`},
	{"list-comments", "GET", "/runs/TASK1/comments", "", `"comments" "text":"no"`},
	{"change-comment", "POST", "/runs/TASK1/comments/1", `{"text":"yes"}`, `"text":"yes"`},
	{"remove-comment", "DELETE", "/runs/TASK1/comments/1", "", `"comments":[]`},
	{"request-task", "POST", "/runs/TASK1/request", `{"text":"again"}`, `"seq"`},
	{"merge-task", "POST", "/runs/TASK2/merge", `{}`, `"seq"`},
	{"sync-task", "POST", "/runs/TASK2/sync", `{}`, `"row":"W9" "the repository has no remote origin`},
	{"undo-task", "POST", "/runs/TASK3/undo", `{}`, `"row":"W9" "event":"undo"`},
	{"push-task", "POST", "/runs/TASK3/push", `{}`, `"row":"W9" "the repository has no remote origin`},
	{"checkout-task", "POST", "/runs/TASK3/checkout", `{}`, `"dir":" "branch":"fairlead/ "base":"main" "done":false`},
	{"drop-task", "POST", "/runs/TASK3/drop", `{}`, `"ref"`},
	{"tell-agent", "POST", "/agents/asker/tell", `{"text":"use v2"}`, `"seq" "agent":"asker" "session":"asker-1" "when":"at_once"`},
	{"open-port", "POST", "/agents/coder/port", `{"port":3000}`, `"event":"open_port"`},
	{"open-shell", "POST", "/agents/coder/shell", `{}`, `"row":"X10"`}, // over TCP; see TestShellIsForTheSocket
}

func TestTaskRoutes(t *testing.T) {
	t.Parallel()
	s := houseAt(t)
	d := dial(t, s)
	id := s.task(t, d)
	changes, err := client.Get[view.TaskChanges](t.Context(), d, "/runs/"+id+"/changes", nil)
	if err != nil || len(changes.Files) != 1 {
		t.Fatal(changes, err)
	}
	from, to := changes.From, changes.To
	for _, c := range []struct {
		method, path, body string
		status             int
		said               string // a part of the answer
	}{
		{"GET", "/changes?to=" + to, "", 200, to},
		{"GET", "/changes?to=HEAD", "", 422, ""},
		{"GET", "/changes?to=--output%3Dx", "", 422, ""},
		{"GET", "/changes/0?from=" + from + "&to=" + to, "", 200, `"kind":"add"`},
		{"GET", "/changes/7?from=" + from + "&to=" + to, "", 404, "changed file"},
		{"GET", "/changes/0", "", 422, ""},
		{"GET", "/changes/-1?from=" + from + "&to=" + to, "", 422, ""},
		{"GET", "/attachments/a.gif", "", 200, "GIF89a"},
		{"GET", "/attachments/a.svg", "", 404, ""},
		{"GET", "/attachments/..%2Ftask.json", "", 404, ""},
		{"POST", "/comments", `{"file":"a.txt","line":1,"text":"why?"}`, 200, `"text":"why?"`},
		{"GET", "/comments", "", 200, `"text":"why?"`},
		{"POST", "/comments", `{"file":"a.txt","line":1,"old":true,"text":"no"}`, 200, `"old":true`},
		{"POST", "/comments", `{"file":"a.txt","line":-3,"text":"no"}`, 422, ""},
		{"POST", "/comments", `{"file":"a.txt","line":3,"text":""}`, 422, ""},
		{"POST", "/comments", `{"text":"no","by":"root"}`, 422, ""},
		{"POST", "/comments", "", 422, ""},
		{"POST", "/comments/1", `{"text":"yes"}`, 200, `"text":"yes"`},
		{"POST", "/comments/0", `{"text":"yes"}`, 422, ""},
		{"POST", "/comments/1", "", 422, ""},
		{"POST", "/comments/1", `{}`, 422, "the body says nothing"},
		{"POST", "/comments/9", `{"resolved":true}`, 404, "comment"},
		{"POST", "/comments/1", `{"resolved":true}`, 200, `"state":"resolved"`},
		{"GET", "/changes", "", 200, `"state":"resolved","at":{"file":"a.txt","line":1}`},
		{"POST", "/comments/1", `{"resolved":false}`, 200, `"state":"open"`},
		{"DELETE", "/comments/2", "", 200, `"text":"yes"`},
		{"POST", "/request", `{"txt":"again"}`, 422, ""},
		{"POST", "/merge", `{"shown":7}`, 422, ""},
		{"POST", "/merge", `{"shown":"0123456789012345678901234567890123456789"}`, 409, ""},
		{"POST", "/merge", `{"tree":"not a hash"}`, 422, ""},
		{"POST", "/merge", `{"tree":"0123456789ab"}`, 409, "you looked at tree 0123456789ab"},
		{"POST", "/steps/approve/approve", `{"tree":"0123456789ab"}`, 409, "you looked at tree 0123456789ab"},
		{"POST", "/request", `{"text":"again","shown":"` + from + `"}`, 409, ""}, // the question shows another commit
		{"POST", "/request", `{"text":"again"}`, 200, `"seq"`},
		{"GET", "/changes", "", 200, `"requests":[{"round":1,"text":"again\n\na.txt:1: yes`},
		{"GET", "/changes", "", 200, `"round":1,"sent":1,"state":"changed","about":["> by worker-1"]`},
		{"POST", "/comments/1", `{"text":"later"}`, 409, "was sent in round 1"},
		{"DELETE", "/comments/1", "", 409, "was sent in round 1"},
		{"POST", "/comments/1", `{"resolved":true}`, 200, `"state":"resolved"`},
		{"POST", "/sync", "", 409, "the repository has no remote origin"},
		{"POST", "/drop", `{"note":"old"}`, 200, `"ref":"refs/fairlead/`},
	} {
		before := s.sup.orders(t)
		text, _ := s.want(t, c.status, c.method, api.Base+"/runs/"+id+c.path, c.body)
		if !strings.Contains(text, c.said) || c.status != 200 && s.sup.orders(t) != before {
			t.Errorf("%s %s %s: %s", c.method, c.path, c.body, text)
		}
		if c.path == "/request" && c.status == 200 {
			s.sup.host.acts(t, "worker-2")
			s.untilRun(t, d, id, "waiting")
		}
	}
}

// An image has its own type, and an answer cannot be taken for a document.
func TestTaskImageHeaders(t *testing.T) {
	s := houseAt(t)
	id := s.task(t, dial(t, s))
	_, h := s.want(t, 200, "GET", api.Base+"/runs/"+id+"/attachments/a.gif", "")
	for header, want := range map[string]string{
		"Content-Type": "image/gif", "X-Content-Type-Options": "nosniff",
		"Content-Length": strconv.Itoa(len(gif)), "Cross-Origin-Resource-Policy": "same-origin",
	} {
		if got := h.Get(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	if policy := h.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("the policy is %q", policy)
	}
}
