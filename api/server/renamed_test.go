package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
)

// Each former path leads to a route of the table, is not in the OpenAPI document, and answers
// as the present path does, with a Deprecation header.
func TestFormerPaths(t *testing.T) {
	document, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	for old, now := range renamed {
		if !slices.ContainsFunc(table(), func(r route) bool { return r.Path == now }) {
			t.Errorf("%s leads to %s, which is not a route", old, now)
		}
		if strings.Contains(string(document), `"`+old+`":`) {
			t.Errorf("the OpenAPI document lists the former path %s", old)
		}
	}
	s := serve(t)
	for old, now := range map[string]string{
		"/team": "/crew", "/standing": "/saved-answers", "/sessions": "/dispatch",
		"/team/agents/a%2Fb": "/crew/agents/a%2Fb", "/sessions/none": "/dispatch/none",
	} {
		was, is := s.send(t, "GET", api.Base+old), s.send(t, "GET", api.Base+now)
		if was.status != is.status || was.body != is.body {
			t.Errorf("%s answers %d %s, and %s answers %d %s", old, was.status, was.body, now, is.status, is.body)
		}
		if was.header.Get("Deprecation") != deprecatedSince || !strings.Contains(was.header.Get("Link"), api.Base+now) {
			t.Errorf("%s: headers %v", old, was.header)
		}
		if is.header.Get("Deprecation") != "" {
			t.Errorf("%s is not deprecated", now)
		}
	}
}

type got struct {
	status int
	body   string
	header http.Header
}
