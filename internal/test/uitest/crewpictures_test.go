package uitest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// TestPictureOfFaces draws every eye with every mouth.
func TestPictureOfFaces(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("PICTURES")
	if dir == "" {
		t.Skip("draws for people to look at; say where with PICTURES=folder")
	}
	p := uitest.Browse(t)
	p.Open(uitest.NewServer(t, uitest.OneAgent).URL)
	p.Resize(uitest.Size{Width: 1280, Height: 1180})
	uitest.Eval[bool](p, `(async () => {
		const { Face } = await import('/crew/facedrawing.js'); const { EYES, MOUTHS } = await import('/crew/face.js'); const { html, render } = await import('/shell/lib.js');
		const colors = ['#c9b1e8', '#3b6ea5', '#f2b705', '#7fb685', '#f2784b', '#1f2440', '#e8c39e', '#d94f70', '#8ad0d0', '#000000', '#ffffff', '#808080'];
		const all = []; let n = 0;
		for (let i = 0; i < 98; i++) all.push(html`+
		"`<div style=${{ width: '84px', height: '84px', margin: '4px' }}><${Face} color=${colors[i % 12]} eyes=${EYES[i % EYES.length]} mouth=${MOUTHS[(i * 3 + Math.floor(i / 15)) % MOUTHS.length]} name=${'n' + i * 7} /></div>`"+`);
		document.body.style.overflow = 'auto';
		render(html`+"`<div style=${{ display: 'flex', flexWrap: 'wrap', padding: '12px' }}>${all}</div>`"+
		`, document.getElementById('app'));
		return true; })()`)
	p.Screenshot(filepath.Join(dir, "crew-faces.png"))
	p.NoConsoleErrors()
}
