package uitest_test

import (
	"os"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestPictureOf writes a picture of a running Mission Control to a file:
//
//	PAGE='http://127.0.0.1:7466/?token=…' PICTURE=$PWD/doc/img/mission-control.png \
//	  go test -count=1 -run TestPictureOf ./internal/test/uitest
//
// It shows the landing page. AGENT shows an agent instead, and SCHEME=light uses the other theme.
func TestPictureOf(t *testing.T) {
	t.Parallel()
	page, picture := os.Getenv("PAGE"), os.Getenv("PICTURE")
	if page == "" || picture == "" {
		t.Skip("draws a running Mission Control; say which and where with PAGE and PICTURE")
	}
	p := uitest.Browse(t)
	if scheme := os.Getenv("SCHEME"); scheme != "" {
		p.Scheme(scheme)
	}
	agent := os.Getenv("AGENT")
	if agent == "" {
		p.Open(page)
		p.Until("the page shows its content",
			`document.querySelector('.need .answer-foot, .now-clear') && document.querySelector('.now-row')`)
	} else {
		p.OpenTeam(page)
		p.Choose(agent)
		p.Until("the page shows its content", `(document.querySelector('.tape, .evidence, .history')?.innerText ?? '').length > 80`)
	}
	p.Screenshot(picture)
	p.NoConsoleErrors()
}
