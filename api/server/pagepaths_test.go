package server

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
)

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
func TestPageUsesDocumentedPaths(t *testing.T) {
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
	if fits("/nothing/*", paths) || !fits("/crew/*", paths) {
		t.Error("the paths are not compared")
	}
}
