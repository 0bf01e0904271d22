package uitest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestPicturesOfCrew draws the crew in all its states, for a person to look at; where, as in
// TestPictures.
func TestPicturesOfCrew(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("draws for people to look at; say where with PICTURES=folder")
	}
	fake := uitest.Hatched()
	url := fake.Serve(t)
	fresh := uitest.Crew()
	fresh.Add(uitest.Agent{Name: "julian", Driver: "claude"})
	fresh.Led("julian", 8)
	freshURL := fresh.Serve(t)
	p := uitest.Browse(t)
	for i, v := range uitest.Views {
		p.Resize(v.Size)
		p.Scheme(v.Scheme)
		shot := func(name string) { p.Screenshot(filepath.Join(dir, "crew-"+v.Name+"-"+name+".png")) }
		p.Open(freshURL + "/#/crew")
		p.WaitText(".crew-line", map[bool]string{true: "has no members yet", false: "to hatch"}[i == 0])
		if i == 0 {
			shot("empty")
			p.Click(".crew-head", "SUMMON")
			p.WaitText(".crew-line", "8 eggs to hatch")
			fresh.Hatch(2, uitest.Eight[2])
			p.WaitText(".seats", "Mira")
		}
		shot("eggs")
		p.Open(url + "/#/crew")
		p.WaitText(".seats", "Tamsin")
		shot("grid")
		p.Open(url + "/#/crew/agent-1/soul")
		p.WaitText(".soul", "I am Lyra")
		shot("soul")
		p.Open(url + "/#/crew/agent-1/transcript")
		p.WaitText(".said", "Shall I write it")
		shot("transcript")
		p.Open(url + "/#/crew/@lead/soul")
		p.WaitText(".notices", "cannot be read")
		shot("lead")
	}
	fake.LeadEnds()
	p.Resize(uitest.Desktop)
	p.Open(url + "/#/crew")
	p.WaitText(".crew-line", "8 asleep")
	p.Screenshot(filepath.Join(dir, "crew-asleep.png"))
	p.NoConsoleErrors()
}

// TestPictureOfFaces draws every eye with every mouth.
func TestPictureOfFaces(t *testing.T) {
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("draws for people to look at; say where with PICTURES=folder")
	}
	p := uitest.Browse(t)
	p.Open(uitest.NewFake("t").Serve(t))
	p.Resize(uitest.Size{Width: 1280, Height: 1180})
	uitest.Eval[bool](p, `(async () => {
		const { Face } = await import('/crew/facedrawing.js'); const { EYES, MOUTHS } = await import('/crew/face.js'); const { html, render } = await import('/shell/lib.js');
		const colors = ['#c9b1e8', '#3b6ea5', '#f2b705', '#7fb685', '#f2784b', '#1f2440', '#e8c39e', '#d94f70', '#8ad0d0', '#000000', '#ffffff', '#808080'];
		const all = []; let n = 0;
		for (let i = 0; i < 98; i++) all.push(html`+"`<div style=${{ width: '84px', height: '84px', margin: '4px' }}><${Face} color=${colors[i % 12]} eyes=${EYES[i % EYES.length]} mouth=${MOUTHS[(i * 3 + Math.floor(i / 15)) % MOUTHS.length]} name=${'n' + i * 7} /></div>`"+`);
		document.body.style.overflow = 'auto';
		render(html`+"`<div style=${{ display: 'flex', flexWrap: 'wrap', padding: '12px' }}>${all}</div>`"+`, document.getElementById('app'));
		return true; })()`)
	p.Screenshot(filepath.Join(dir, "crew-faces.png"))
	p.NoConsoleErrors()
}
