package uitest_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/ui/uitest"
)

// TestPictures draws the page as it looks on an ordinary afternoon, for a
// person to look at: PICTURES=folder go test -run TestPictures ./ui/uitest
func TestPictures(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("draws for people to look at; say where with PICTURES=folder")
	}
	server := httptest.NewServer(uitest.Crew().Handler())
	defer server.Close()
	p := uitest.Browse(t)
	shot := func(name string) { p.Screenshot(filepath.Join(dir, name+".png")) }
	p.Open(server.URL)
	p.WaitText(".roster", "coder")
	p.WaitText(".tape", "Running the tests again")
	shot("desktop-dark")
	p.Click(".tabs", "Evidence")
	p.WaitText(".evidence", "holder")
	shot("desktop-dark-evidence")
	p.Click(".tabs", "History")
	p.WaitText(".history", "#")
	shot("desktop-dark-history")
	p.Click(".tabs", "Output")
	p.Scheme("light")
	shot("desktop-light")
	p.Resize(uitest.Phone)
	shot("phone-light-agent")
	p.Scheme("dark")
	shot("phone-dark-agent")
	p.Click(".agent-head", "Team")
	shot("phone-dark-team")
	p.NoConsoleErrors()
}
