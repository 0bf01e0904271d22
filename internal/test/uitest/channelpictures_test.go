package uitest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestPicturesOfChannels draws channels in all their states, for a person to look at; where, as
// in TestPictures.
func TestPicturesOfChannels(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("draws for people to look at; say where with PICTURES=folder")
	}
	fake := uitest.Parley()
	url := fake.Serve(t)
	p := uitest.Browse(t)
	for _, v := range uitest.Views {
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		shot := func(name string) { p.Screenshot(filepath.Join(dir, "channel-"+v.Name+"-"+name+".png")) }
		p.Open(url + "/#/channels")
		p.WaitText(".channel-list", "reviews")
		shot("list")
		for _, name := range []string{"reviews", "release", "gardening", "empty", "all-hands"} {
			p.Open(url + "/#/channel/" + name)
			p.WaitText("#channel-title", name)
			p.Until("its words are shown", `document.querySelector('.say, .talk-empty')`)
			shot(name)
			if v.Size == uitest.Phone {
				p.Click(".sides", "Rotation")
			}
			if name == "reviews" {
				p.Click(".members", "tester")
			}
			if name == "reviews" || v.Size == uitest.Phone {
				shot(name + "-circle")
			}
		}
		p.Open(url + "/#/agent/tester/output")
		p.WaitText(".turn-chips", "reviews")
		shot("agent")
	}
	p.NoConsoleErrors()
}
