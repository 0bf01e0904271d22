package places_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

// A session whose environment has no home folder, as that of a service may, has one of its own all the same, at a path of the view.
func TestNoHome(t *testing.T) {
	m := newMachine(t, "repo/coder/")
	for env, want := range map[string]string{
		"PATH=/usr/bin":                        "/home/agent",
		"PATH=/usr/bin HOME=":                  "/home/agent",
		"PATH=/usr/bin HOME=home":              "/home/agent",
		"PATH=/usr/bin HOME=/":                 "/home/agent",
		"PATH=/usr/bin HOME=" + m.at("home"):   m.at("home"),
		"PATH=/usr/bin HOME=" + m.at("absent"): m.at("absent"),
	} {
		s := m.session("repo/coder")
		s.Env = strings.Fields(env)
		p, err := places.Of(s)
		if err != nil {
			t.Fatal(err)
		}
		if p.View.HomeAt != want {
			t.Errorf("%s: the home folder is %s, want %s", env, p.View.HomeAt, want)
		}
		for _, place := range p.View.Places {
			if !filepath.IsAbs(place.Path) {
				t.Errorf("%s: the place %s is relative", env, place.Path)
			}
		}
	}
}
