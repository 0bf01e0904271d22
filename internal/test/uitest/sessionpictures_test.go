package uitest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestPicturesOfSessions draws sessions in all their states, for a person to look at; where, as in
// TestPictures.
func TestPicturesOfSessions(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("draws for people to look at; say where with PICTURES=folder")
	}
	fake := uitest.Seated()
	url := fake.Serve(t)
	empty := uitest.Crew().Serve(t)
	p := uitest.Browse(t)
	for _, v := range uitest.Views {
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		shot := func(name string) { p.Screenshot(filepath.Join(dir, "sessions-"+v.Name+"-"+name+".png")) }
		p.Open(empty + "/#/sessions")
		p.WaitText(".session-list", "No dispatch yet")
		shot("empty")
		p.Open(url + "/#/sessions")
		p.WaitText(".session-list", uitest.SeatedName)
		shot("list")
		p.Open(url + "/#/session/" + uitest.SeatedName)
		p.WaitText(".state-now", "FULLSTACK_ENGINEER")
		shot("one")
		uitest.Eval[bool](p, `(document.querySelector('.session-pane').scrollTop = 700, true)`)
		shot("further")
		p.Open(url + "/#/session/" + uitest.SeatedName + "/conv_002")
		p.WaitText(".dialogue", "reports")
		p.Click(".output-file", "Show")
		p.WaitText(".output-file-text", "Hello, World")
		shot("conversation")
		p.Click(".masthead", "Sessions")
		p.WaitText(".session-list", uitest.SeatedName)
		p.Click(".session-list", "Start a dispatch")
		p.WaitText("dialog", "Who does the work")
		shot("start")
	}
	p.NoConsoleErrors()
}
