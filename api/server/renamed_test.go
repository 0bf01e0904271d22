package server

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
)

// Each former path leads to a route of the table and is not in the OpenAPI document.
func TestFormerPathsLeadToRoutes(t *testing.T) {
	document := OpenAPI()
	for old, now := range renamed {
		if !slices.ContainsFunc(table(), func(r route) bool { return r.Path == now }) {
			t.Errorf("%s leads to %s, which is not a route", old, now)
		}
		if strings.Contains(string(document), `"`+old+`":`) {
			t.Errorf("the OpenAPI document lists the former path %s", old)
		}
	}
}

// Each former path answers as its present path does, and its headers name the present path.
func TestFormerPathsAnswer(t *testing.T) {
	t.Parallel()
	s, names := lived(t)
	taken := map[string]bool{}
	askAll(t, s, names, func(c askedOnce) (string, func(string, http.Header)) {
		old, path := formerPath(c.path)
		taken[old] = true
		return path, func(text string, h http.Header) {
			if old == "" {
				if h.Get("Deprecation") != "" {
					t.Errorf("%s %s is not a former path, and its answer says so", c.method, c.path)
				}
				return
			}
			if old == "/agents/{name}/errands" && !strings.Contains(text, `"errands"`) {
				t.Errorf("%s has no errands: %s", path, text)
			}
			now, _, _ := strings.Cut(c.path, "?")
			if link := "<" + api.Base + now + `>; rel="successor-version"`; h.Get("Deprecation") != deprecatedSince || h.Get("Link") != link {
				t.Errorf("%s %s: headers %v, want a link %s", c.method, path, h, link)
			}
		}
	})
	for old := range renamed {
		if !taken[old] {
			t.Errorf("no request was sent to the former path %s", old)
		}
	}
}

// A name in a former path keeps its escapes, and a body may be as long as at the present path.
func TestFormerPathsKeepTheRequest(t *testing.T) {
	s := serve(t)
	_, h := s.want(t, 404, "GET", api.Base+"/team/agents/a%2Fb%3Fc", "")
	if link := "<" + api.Base + `/crew/agents/a%2Fb%3Fc>; rel="successor-version"`; h.Get("Link") != link {
		t.Errorf("the link is %s, want %s", h.Get("Link"), link)
	}
	long := `{"type":"agent-identity","x":"` + strings.Repeat("a", api.BodyBytesMax) + `"}`
	s.want(t, 422, "POST", api.Base+"/team/import", long) // it is read, and has no status
	s.want(t, 405, "DELETE", api.Base+"/standing", "")
}

// formerPath is a path as it was called before, and its pattern; the path itself, and no pattern,
// if it was never renamed.
func formerPath(path string) (pattern, former string) {
	at, query, _ := strings.Cut(path, "?")
	for old, now := range renamed {
		names := pathVariable().FindAllStringSubmatch(now, -1)
		values := regexp.MustCompile("^" + pathVariable().ReplaceAllString(regexp.MustCompile(`[.]`).ReplaceAllString(now, `\.`), "([^/]+)") + "$").FindStringSubmatch(at)
		if values == nil {
			continue
		}
		former = old
		for i, name := range names {
			former = strings.Replace(former, name[0], values[i+1], 1)
		}
		if query != "" {
			former += "?" + query
		}
		return old, former
	}
	return "", path
}

// documented are the paths of the OpenAPI document.
func documented(t *testing.T) (paths []string) {
	t.Helper()
	var document openAPIDoc
	if err := json.Unmarshal(OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	for path := range document.Paths {
		paths = append(paths, path)
	}
	return paths
}

// fits says whether a path, in which "*" stands for any one segment, is one of the templates.
func fits(path string, templates []string) bool {
	parts := strings.Split(path, "/")
	return slices.ContainsFunc(templates, func(template string) bool {
		want := strings.Split(template, "/")
		if len(want) != len(parts) {
			return false
		}
		for i := range want {
			if parts[i] != want[i] && parts[i] != "*" && !strings.HasPrefix(want[i], "{") {
				return false
			}
		}
		return true
	})
}

// The functions of shell/api.js, which send all requests of Mission Control, use documented paths only.
func TestPageUsesPresentPaths(t *testing.T) {
	const file = "../../ui/static/shell/api.js"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	code := strings.ReplaceAll(string(text), "${BASE}", "")
	code = regexp.MustCompile(`\$\{[^{}]*\}`).ReplaceAllString(code, "*")
	literals := regexp.MustCompile("['`](/[a-z*][^'`\\s]*)['`]").FindAllStringSubmatch(code, -1)
	if len(literals) < 30 {
		t.Fatalf("%d paths in %s; the expression no longer finds them", len(literals), file)
	}
	paths := documented(t)
	for _, literal := range literals {
		path, _, _ := strings.Cut(literal[1], "?")
		path = strings.Replace(path, "**", "*", 1) // a name and an optional query
		if path != api.Base && !fits(path, paths) {
			t.Errorf("%s requests %s, which is not a documented path", file, literal[1])
		}
	}
	if fits("/team/*", paths) || fits("/sessions/*", paths) || !fits("/crew/*", paths) {
		t.Error("a former path counts as documented")
	}
}
