package uitest_test

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/uitest"
)

// paints notes the colours of the page: when the first style sheet is only asked for, and in each of the first frames.
const paints = `(() => {
	if (location.protocol === 'about:') return;
	window.painted = [];
	const note = (when) => { const s = getComputedStyle(document.documentElement); window.painted.push(when + ' ' + s.colorScheme + ' ' + s.backgroundColor); };
	const seen = new MutationObserver(() => {
		if (!document.querySelector('link[rel=stylesheet]')) return;
		seen.disconnect();
		window.painted.push('canvas ' + document.documentElement.style.colorScheme);
	});
	seen.observe(document, { childList: true, subtree: true });
	let frames = 0;
	const frame = () => { note('frame'); if (++frames < 20) requestAnimationFrame(frame); };
	requestAnimationFrame(frame);
})()`

// A page begins in its own theme, whatever the system prefers: no frame has the colours of the other one.
func TestFirstPaint(t *testing.T) {
	t.Parallel()
	s := uitest.NewServer(t, uitest.OneAgent)
	for _, v := range []struct{ system, stored, theme string }{
		{"light", "auto", "light"}, {"dark", "auto", "dark"}, {"dark", "light", "light"}, {"light", "dark", "dark"},
	} {
		t.Run(v.system+" with "+v.stored, func(t *testing.T) {
			p := uitest.Browse(t)
			p.Scheme(v.system)
			p.Open(s.URL)
			uitest.Eval[bool](p, `(localStorage.setItem('fairlead.theme', '`+v.stored+`'), true)`)
			uitest.RunFirst(p, paints)
			p.Open(s.URL)
			p.Until("the first frames are drawn", `window.painted.length >= 21`)
			ground := map[string]string{"dark": "rgb(12, 20, 28)", "light": "rgb(233, 229, 218)"}[v.theme]
			for _, one := range strings.Split(uitest.Eval[string](p, `window.painted.join('\n')`), "\n") {
				if one != "canvas "+v.theme && one != "frame "+v.theme+" "+ground {
					t.Errorf("a %s page shows %q", v.theme, one)
				}
			}
			if got := uitest.Eval[string](p,
				`[...document.querySelectorAll('meta[name=theme-color]')].map(e => e.content).join()`); got != map[string]string{"dark": "#0c141c", "light": "#e9e5da"}[v.theme] {
				t.Errorf("the browser's bar has the colour %s", got)
			}
		})
	}
}

// Key caps on the help sheet touch neither each other nor the words beside them: from the narrowest window to a wide
// one, in both themes, and with text of twice the size.
func TestKeyCaps(t *testing.T) {
	t.Parallel()
	s := uitest.NewServer(t, uitest.OneAgent)
	p := uitest.Browse(t)
	for _, scheme := range []string{"dark", "light"} {
		for _, width := range []int64{320, 360, 412, 600, 700, 768, 1024, 1280, 1920} {
			for _, size := range []string{"100%", "200%"} {
				p.Scheme(scheme)
				p.Resize(uitest.Size{Width: width, Height: 900})
				if scheme == "dark" && width == 320 && size == "100%" {
					p.Open(s.URL)
					p.Press("?")
				}
				uitest.Eval[bool](p, `(document.documentElement.style.fontSize = '`+size+`', true)`)
				p.WaitText("dialog", "Keys and words")
				if got := uitest.Eval[string](p, overlaps); got != "" {
					t.Errorf("%s, %d wide, text of %s: %s", scheme, width, size, got)
				}
			}
		}
	}
}

// overlaps are the key caps that touch something, as text.
const overlaps = `(() => {
	const caps = [...document.querySelectorAll('dialog kbd')], out = [];
	const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
	caps.forEach((cap, i) => {
		const box = cap.getBoundingClientRect();
		for (const other of caps.slice(i + 1)) if (meet(box, other.getBoundingClientRect())) out.push(cap.textContent + ' and ' + other.textContent);
		if (meet(box, cap.closest('dt').nextElementSibling.getBoundingClientRect())) out.push(cap.textContent + ' and its words');
		if (cap.scrollWidth > cap.clientWidth) out.push(cap.textContent + ' is wider than its cap');
	});
	return caps.length < 20 ? 'only ' + caps.length + ' caps' : out.join('; ');
})()`
