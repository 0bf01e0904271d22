package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/fairlead-dev/fairlead/internal/runtimedir"
	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// Two daemons find each other. A person goes from the page of one to that of the other and is signed in there.
func TestReposPage(t *testing.T) {
	needsBrowser(t)
	sockets, err := os.MkdirTemp("/tmp", "repos") //nolint:usetesting // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(sockets) })
	t.Setenv(runtimedir.Var, sockets)
	folder := func(name string) string {
		dir := filepath.Join(t.TempDir(), name)
		if dir, err = filepath.EvalSymlinks(filepath.Dir(dir)); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	files := map[string]string{"fairlead.yaml": "version: 1\nagents:\n  coder: {description: Writes, driver: exec, command: ['true'], workspace: w}\n", "w/README": "w\n"}
	alpha, beta := newRigIn(t, folder("alpha-quay"), files), newRigIn(t, folder("beta-quay"), files)
	for _, v := range uitest.Views {
		t.Run(v.Name, func(t *testing.T) {
			p := uitest.Browse(t)
			p.Resize(v.Size)
			p.Scheme(v.Scheme)
			p.Open(alpha.url)
			p.Until("the page is live", `document.querySelector('.line-live')`)
			p.Click(".masthead", "alpha-quay")
			p.WaitText("dialog .repo", "beta-quay")
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			p.Click("dialog", "All repositories")
			p.WaitText("#repositories-title", "All repositories")
			p.WaitText(".repos-page .repo", beta.dir)
			p.Axe()
			p.Until("nothing is wider than the window", uitest.Fits(p))
			p.Press(kb.Escape)
			p.Click(".repos-page", "beta-quay")
			base, _, _ := strings.Cut(beta.url, "?")
			p.Until("the other page is open and signed in",
				`location.href.startsWith("`+base+
					`") && document.querySelector('.line-live') && document.querySelector('.brand-switch').innerText.includes('beta-quay')`)
			p.NoConsoleErrors()
		})
	}
}
