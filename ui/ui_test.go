package ui

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

var handler = Handler()

func get(t *testing.T, method, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func TestEveryAnswerIsGuarded(t *testing.T) {
	for _, c := range []struct {
		method, target string
		status         int
	}{
		{"GET", "/", 200},
		{"HEAD", "/", 200},
		{"GET", "/app.js", 200},
		{"GET", "/vendor/preact.mjs", 200},
		{"GET", "/nowhere", 404},
		{"GET", "/static/app.js", 404},
		{"GET", "/shell/../ui.go", 404},
		{"GET", "/shell/lib.d.ts", 404},
		{"GET", "/vendor", 404},
		{"POST", "/", 405},
	} {
		w := get(t, c.method, c.target)
		if w.Code != c.status {
			t.Errorf("%s %s: %d, want %d", c.method, c.target, w.Code, c.status)
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			"X-Content-Type-Options":  "nosniff", "Referrer-Policy": "no-referrer",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", c.method, c.target, name, got, want)
			}
		}
		if c.method == "HEAD" && w.Body.Len() > 0 {
			t.Errorf("HEAD %s: has a body", c.target)
		}
	}
}

// The page names every module that it will import and one style sheet, in the folder of this version, where the browser keeps
// them. What is asked for without that folder, or in the folder of another version, is asked for again each time.
func TestThePageNamesItsAssets(t *testing.T) {
	index := get(t, "GET", "/")
	if kept := index.Header().Get("Cache-Control"); kept != "no-cache" {
		t.Errorf("the page itself: Cache-Control %q", kept)
	}
	named := map[string]bool{}
	for _, m := range attribute.FindAllStringSubmatch(index.Body.String(), -1) {
		w := get(t, "GET", m[1])
		if w.Code != 200 {
			t.Errorf("%s: %d", m[1], w.Code)
		}
		if rest, ok := strings.CutPrefix(m[1], "/v/"); ok {
			_, name, _ := strings.Cut(rest, "/")
			named[name] = true
			if kept := w.Header().Get("Cache-Control"); kept != "public, max-age=31536000, immutable" {
				t.Errorf("%s: Cache-Control %q", m[1], kept)
			}
			if kept := get(t, "GET", "/v/0123456789abcdef/"+name).Header().Get("Cache-Control"); kept != "no-cache" {
				t.Errorf("%s in another version: Cache-Control %q", name, kept)
			}
		}
	}
	seen := map[string]bool{"app.js": true}
	for queue := []string{"app.js"}; len(queue) > 0; queue = queue[1:] {
		if !named[queue[0]] {
			t.Errorf("the page imports %s and does not name it", queue[0])
		}
		for _, m := range importPath.FindAllStringSubmatch(get(t, "GET", "/"+queue[0]).Body.String(), -1) {
			name := path.Join(path.Dir(queue[0]), m[1])
			if static := !strings.Contains(m[0], "("); static && !seen[name] {
				seen[name] = true
				queue = append(queue, name)
			}
		}
	}
	if len(seen) < 50 || len(named) != len(seen)+2 { // the style sheet and the theme
		t.Errorf("it names %d assets and imports %d modules", len(named), len(seen))
	}
	sheets := strings.Count(index.Body.String(), `rel="stylesheet"`)
	if text := get(t, "GET", "/page.css").Body.String(); sheets != 1 || !strings.Contains(text, ".masthead") ||
		!strings.Contains(text, ".diff") {
		t.Errorf("%d style sheets, %d bytes", sheets, len(text))
	}
}

func TestAssetsAreNamedByTheirContent(t *testing.T) {
	first := get(t, "GET", "/app.js")
	tag := first.Header().Get("ETag")
	if tag == "" || first.Header().Get("Cache-Control") != "no-cache" {
		t.Fatalf("ETag %q, Cache-Control %q", tag, first.Header().Get("Cache-Control"))
	}
	for _, header := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		if w := get(t, "GET", "/app.js", "If-None-Match", header); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
			t.Errorf("If-None-Match %s: %d with %d bytes, want 304 with none", header, w.Code, w.Body.Len())
		}
	}
	if w := get(t, "GET", "/app.js", "If-None-Match", `"other"`); w.Code != http.StatusOK {
		t.Errorf("another tag: %d, want 200", w.Code)
	}
	if other := get(t, "GET", "/shell/feed.js").Header().Get("ETag"); other == tag {
		t.Error("two files have one ETag")
	}
}

// Texts are compressed for those who take it, and are the same afterwards.
func TestCompressed(t *testing.T) {
	plain := get(t, "GET", "/app.js").Body.String()
	for header, want := range map[string]bool{
		"gzip": true, "gzip, deflate, br": true, "br;q=1.0, gzip;q=0.8": true, "GZIP ; q=0.5": true,
		"": false, "br": false, "gzip;q=0": false, "gzip;q=0.000": false,
	} {
		w := get(t, "GET", "/app.js", "Accept-Encoding", header)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != want {
			t.Errorf("Accept-Encoding %q: compressed is %v", header, got)
		}
		if !want {
			continue
		}
		r, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(r); err != nil || string(text) != plain {
			t.Errorf("Accept-Encoding %q: %d bytes are not the %d of the file: %v", header, len(text), len(plain), err)
		}
	}
	if w := get(t, "GET", "/icons/apple-touch-180.png", "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "" {
		t.Error("a picture is compressed once more")
	}
}

type vendored struct {
	Imports map[string]string `json:"imports"`
	Files   []struct {
		File, Package, Version, Licence string
		LicenceFile                     string `json:"licence_file"`
		SHA256                          string `json:"sha256"`
		UpstreamSHA256                  string `json:"upstream_sha256"`
	} `json:"files"`
}

func TestVendoredFilesAreWhatWasRecorded(t *testing.T) {
	files := FS()
	body, err := fs.ReadFile(files, "vendor/VENDORED.json")
	if err != nil {
		t.Fatal(err)
	}
	var record vendored
	if err := json.Unmarshal(body, &record); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range record.Files {
		known[f.File] = true
		text, err := fs.ReadFile(files, "vendor/"+f.File)
		if err != nil {
			t.Errorf("%s is recorded and missing: %v", f.File, err)
			continue
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != f.SHA256 {
			t.Errorf("vendor/%s is not the file that was recorded; get it again with: npm run vendor", f.File)
		}
		if f.Package == "" || f.Version == "" || f.Licence == "" || len(f.UpstreamSHA256) != 64 {
			t.Errorf("vendor/%s: the record lacks package, version, licence or upstream sum", f.File)
		}
		if licence, err := fs.ReadFile(files, "vendor/"+f.LicenceFile); err != nil || len(licence) < 500 {
			t.Errorf("vendor/%s: its licence %q is not here: %v", f.File, f.LicenceFile, err)
		}
	}
	found, err := fs.Glob(files, "vendor/*.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range found {
		if !known[path.Base(name)] {
			t.Errorf("%s is vendored and not recorded in VENDORED.json", name)
		}
	}
	if len(found) == 0 {
		t.Error("nothing is vendored")
	}
}

var (
	// a name has no spaces; comments of a library may say "from" before a quote
	importPath = regexp.MustCompile(`(?:\bfrom\s*|\bimport\s*\(?\s*)['"]([^'"\s]+)['"]`)
	attribute  = regexp.MustCompile(`(?:href|src)="([^"]+)"`)
	// What would make text into markup or into code, or reach another host.
	dangerous = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function|setAttribute\(['"]on|https?://|wss?://`)
)

func TestSourcesReachNothingElse(t *testing.T) {
	files := FS()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		text := string(body)
		ext := path.Ext(name)
		if ext == ".js" || ext == ".mjs" {
			for _, m := range importPath.FindAllStringSubmatch(text, -1) {
				if !strings.HasPrefix(m[1], "./") && !strings.HasPrefix(m[1], "../") {
					t.Errorf("%s imports %q: the policy allows no import map, so imports are relative paths", name, m[1])
				} else if _, err := fs.Stat(files, path.Join(path.Dir(name), m[1])); err != nil {
					t.Errorf("%s imports %q, which is not there", name, m[1])
				}
			}
		}
		if strings.HasPrefix(name, "vendor/") {
			return nil
		}
		if ext == ".html" {
			for _, m := range attribute.FindAllStringSubmatch(text, -1) {
				if _, err := fs.Stat(files, strings.TrimPrefix(m[1], "/")); err != nil {
					t.Errorf("%s names %s, which is not there", name, m[1])
				}
			}
			if strings.Contains(text, "<style") || strings.Contains(text, " style=") ||
				regexp.MustCompile(`<script(?:>| [^>]*>)[^<]+</script>`).MatchString(text) {
				t.Errorf("%s has an inline style or script; the policy forbids it", name)
			}
		}
		if m := dangerous.FindString(strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")); m != "" &&
			(ext == ".js" || ext == ".html" || ext == ".css" || ext == ".svg") {
			t.Errorf("%s contains %q: foreign words are only ever text, and the page talks to nobody else", name, m)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A class that one folder styles by itself is not styled so by another: the page has one style sheet.
func TestClassesBelongToOneFolder(t *testing.T) {
	comment, rule, class := regexp.MustCompile(`(?s)/\*.*?\*/`), regexp.MustCompile(`([^{}]+)\{`), regexp.MustCompile(`^\.[\w-]+$`)
	owner := map[string]string{}
	err := fs.WalkDir(embedded, "static", func(name string, entry fs.DirEntry, err error) error {
		folder := path.Base(path.Dir(name))
		if err != nil || path.Ext(name) != ".css" || folder == "vendor" || folder == "shell" {
			return err
		}
		text, err := fs.ReadFile(embedded, name)
		if err != nil {
			return err
		}
		for _, m := range rule.FindAllStringSubmatch(comment.ReplaceAllString(string(text), ""), -1) {
			for _, s := range strings.Split(m[1], ",") {
				s = strings.TrimSpace(s)
				if !class.MatchString(s) {
					continue
				}
				if other := owner[s]; other != "" && other != folder {
					t.Errorf("%s is styled by %s and by %s: give it a name of its own", s, other, folder)
				}
				owner[s] = folder
			}
		}
		return nil
	})
	if err != nil || len(owner) < 100 {
		t.Errorf("%d classes were found: %v", len(owner), err)
	}
}
