// Package ui is Mission Control: one page from which a person watches a team and
// gives it orders.
//
// The page is a window, not an engine. It knows what the API tells it and
// nothing else; what it shows is either in the journal or marked as asked for.
// Its sources in static/ are what ships: no build step is between them and
// the browser, and four small libraries lie beside them in static/vendor. All
// that agents say is hostile until shown as text, so the page may run only its
// own scripts, connect only to its own server, and cannot be put into a frame.
//
// The one promise: the page needs nothing from anywhere but this binary.
package ui

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
)

//go:embed static/*.html static/*.js static/*.svg static/*.webmanifest static/icons/*.png static/*/*.js static/*/*.css static/vendor
var embedded embed.FS

// Policy is the content security policy of the page and all its assets: its own
// scripts, styles and server, and nothing else.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// types holds every kind of file that is served; the machine's own table of
// types is not asked, because it differs from machine to machine.
var types = map[string]string{
	".html":        "text/html; charset=utf-8",
	".css":         "text/css; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".mjs":         "text/javascript; charset=utf-8",
	".svg":         "image/svg+xml",
	".png":         "image/png",
	".webmanifest": "application/manifest+json",
	".json":        "application/json",
	".txt":         "text/plain; charset=utf-8",
}

// FS holds the page's files as they are served, index.html at its root.
func FS() fs.FS {
	sub, err := fs.Sub(embedded, "static")
	if err != nil {
		panic(fmt.Sprintf("ui: the embedded folder is gone: %v", err))
	}
	return sub
}

type asset struct {
	body []byte
	kind string
	etag string
	gzip func() []byte // made at the first request
}

// Handler serves the page at / and its assets beside it, to GET and HEAD only.
// Every answer carries [Policy]. The page itself is asked for each time, so that a
// new binary is a new page at once; it names its assets in a folder of their
// version, where a browser keeps them. It needs no token: the files are the
// same for everyone, and reveal nothing.
func Handler() http.Handler {
	prepared := sync.OnceValues(load) // most runs and many daemons show no page
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "the page is only read; orders go to /api/v1", http.StatusMethodNotAllowed)
			return
		}
		name := cmp.Or(unversioned(strings.TrimPrefix(r.URL.Path, "/")), "index.html")
		assets, home := prepared()
		a, ok := assets[name]
		if !ok {
			http.Error(w, "there is no such page; Mission Control is at /", http.StatusNotFound)
			return
		}
		h.Set("Content-Type", a.kind)
		h.Set("ETag", a.etag)
		h.Set("Vary", "Accept-Encoding")
		h.Set("Cache-Control", "no-cache")
		if strings.HasPrefix(r.URL.Path, home) {
			h.Set("Cache-Control", "public, max-age=31536000, immutable")
		}
		if matches(r.Header.Get("If-None-Match"), a.etag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		body := a.body
		if small := a.gzip; takesGzip(r.Header.Get("Accept-Encoding")) && small() != nil {
			body = small()
			h.Set("Content-Encoding", "gzip")
			h.Set("ETag", "W/"+a.etag) // other bytes of the same content
		}
		h.Set("Content-Length", strconv.Itoa(len(body)))
		if r.Method == http.MethodGet {
			_, _ = w.Write(body) // if this fails, the browser is gone
		}
	})
}

// load prepares the embedded files. A file of a type that is not served is a bug, which the first test
// of a Handler finds.
func load() (assets map[string]asset, home string) {
	all, home, err := files()
	if err != nil {
		panic(fmt.Sprintf("ui: read the embedded page: %v", err))
	}
	assets = map[string]asset{}
	for name, body := range all {
		kind, ok := types[path.Ext(name)]
		if !ok {
			panic(fmt.Sprintf("ui: %s has no content type; add its ending to types", name))
		}
		sum := sha256.Sum256(body)
		assets[name] = asset{
			body: body, kind: kind, etag: `"` + hex.EncodeToString(sum[:16]) + `"`,
			gzip: sync.OnceValue(func() []byte { return packed(body) }),
		}
	}
	return assets, home
}

// takesGzip reports whether an Accept-Encoding header names gzip without forbidding it (RFC 9110, 12.5.3).
func takesGzip(header string) bool {
	for _, one := range strings.Split(header, ",") {
		coding, weight, _ := strings.Cut(strings.ReplaceAll(one, " ", ""), ";")
		if strings.EqualFold(coding, "gzip") {
			return strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

// matches reports whether an If-None-Match header names the tag. Proxies make
// tags weak; for this use a weak one is as good (RFC 9110, 13.1.2).
func matches(header, etag string) bool {
	for _, tag := range strings.Split(header, ",") {
		tag = strings.TrimSpace(tag)
		if tag == "*" || strings.TrimPrefix(tag, "W/") == etag {
			return true
		}
	}
	return false
}
