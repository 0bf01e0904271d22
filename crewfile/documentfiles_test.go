package crewfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"golang.org/x/sys/unix"
)

// papersOf is a folder of documents and a caller that knows some contents as its own.

type papersOf struct {
	t     *testing.T
	dir   string
	files *DocumentFiles
	ours  map[file.Sum]bool
}

func newPapers(t *testing.T) *papersOf {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "agents")
	files, err := WatchDocuments(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	return &papersOf{t: t, dir: dir, files: files, ours: map[file.Sum]bool{}}
}

func (p *papersOf) isOurs(_ string, sum file.Sum) bool { return p.ours[sum] }

func sound(content []byte) error {
	if len(content) == 0 || content[0] != '{' || content[len(content)-1] != '}' {
		return errors.New("no object")
	}
	return nil
}

func (p *papersOf) look() DocumentSight {
	p.t.Helper()
	sight, err := p.files.Look(p.isOurs, sound)
	if err != nil {
		p.t.Fatal(err)
	}
	return sight
}

// until looks, as a caller does, until a condition holds.
func (p *papersOf) until(what string, ok func(DocumentSight) bool) DocumentSight {
	p.t.Helper()
	return wait.Value(p.t, what, func() (DocumentSight, error) { return p.look(), nil }, ok)
}

func (p *papersOf) write(stem, content string, seen file.Sum) error {
	p.ours[file.SumOf([]byte(content))] = true
	return p.files.Write(stem, []byte(content), seen, func(sum file.Sum) bool { return p.ours[sum] })
}

func (p *papersOf) foreign(name, content string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o640); err != nil {
		p.t.Fatal(err)
	}
}

func (p *papersOf) read(name string) string {
	text, _ := os.ReadFile(filepath.Join(p.dir, name))
	return string(text)
}

func (p *papersOf) names() string {
	names, _ := file.NamesIn(p.dir)
	return fmt.Sprint(names)
}

func TestDocumentFilesWriteOverNothingForeign(t *testing.T) {
	p := newPapers(t)
	if sight := p.look(); len(sight.Found)+len(sight.Lies) != 0 {
		t.Errorf("%+v", sight)
	}
	if err := p.write("a", "{one}", ""); err != nil {
		t.Fatal(err)
	}
	if err := p.write("a", "{two}", file.SumOf([]byte("{one}"))); err != nil {
		t.Fatal(err)
	}
	p.foreign("a.json", "{theirs}")
	if err := p.write("a", "{three}", file.SumOf([]byte("{two}"))); !errors.Is(err, ErrDocumentChanged) {
		t.Errorf("%v", err)
	}
	if err := p.write("a", "{three}", ""); !errors.Is(err, ErrDocumentChanged) {
		t.Errorf("%v", err)
	}
	sight := p.until("it is found", func(s DocumentSight) bool { return len(s.Found) == 1 })
	found := sight.Found[0]
	if found.Stem != "a" || string(found.Bytes) != "{theirs}" || found.Fault != "" || found.Swapped {
		t.Errorf("%+v", found)
	}
	if again := p.look(); len(again.Found) != 1 {
		t.Errorf("nobody has it, and it is not handed out: %+v", again)
	}
	p.files.Took(found)
	if sight = p.look(); len(sight.Found) != 0 || sight.Lies["a"] != found.Sum {
		t.Errorf("%+v", sight)
	}
	if err := p.write("a", "{three}", found.Sum); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "plain") // a folder with the umask's default mode
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	want, err := os.Stat(plain)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(p.dir, "a.json")); err != nil || info.Mode() != want.Mode() || p.read("a.json") != "{three}" {
		t.Errorf("%v %v %s", info, err, p.read("a.json"))
	}
	p.until("what was replaced is let go of", func(DocumentSight) bool { return p.names() == "[a.json]" })
}

// A program that has the replaced file open and writes to it is noticed.
func TestDocumentFilesHearOldPens(t *testing.T) {
	p := newPapers(t)
	if err := p.write("a", "{one}", ""); err != nil {
		t.Fatal(err)
	}
	pen, err := os.OpenFile(filepath.Join(p.dir, "a.json"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pen.Close()
	if err := p.write("a", "{two}", file.SumOf([]byte("{one}"))); err != nil {
		t.Fatal(err)
	}
	if _, err := pen.WriteAt([]byte("{ONE}"), 0); err != nil {
		t.Fatal(err)
	}
	sight := p.until("it is found", func(s DocumentSight) bool { return len(s.Found) == 1 })
	if found := sight.Found[0]; !found.Swapped || found.Name != "a.json" || string(found.Bytes) != "{ONE}" {
		t.Errorf("%+v", found)
	}
	if p.read("a.json") != "{two}" {
		t.Errorf("%s", p.read("a.json"))
	}
	// The process ends before a content was confirmed: the next start finds it.
	_ = p.files.Close()
	p.files, err = WatchDocuments(p.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.files.Close()
	sight = p.until("it is found again", func(s DocumentSight) bool { return len(s.Found) == 1 })
	p.files.Took(sight.Found[0])
	p.until("it is let go of", func(DocumentSight) bool { return p.names() == "[a.json]" })
}

// What another program writes between the last look and the exchange is in the replaced file.
func TestDocumentFilesFindWhatTheExchangeTook(t *testing.T) {
	p := newPapers(t)
	if err := p.write("a", "{one}", ""); err != nil {
		t.Fatal(err)
	}
	p.files.exchange = func(dir int, a, b string) error {
		p.foreign("other", "{late}")
		if err := os.Rename(filepath.Join(p.dir, "other"), filepath.Join(p.dir, "a.json")); err != nil {
			t.Error(err)
		}
		return file.Exchange(dir, a, b)
	}
	if err := p.write("a", "{two}", file.SumOf([]byte("{one}"))); err != nil {
		t.Fatal(err)
	}
	sight := p.until("it is found", func(s DocumentSight) bool { return len(s.Found) == 1 })
	if string(sight.Found[0].Bytes) != "{late}" || !sight.Found[0].Swapped {
		t.Errorf("%+v", sight.Found)
	}
	p.files.exchange = func(int, string, string) error { return unix.EINVAL } // a file system without exchange
	if err := p.write("a", "{three}", file.SumOf([]byte("{two}"))); err != nil || p.read("a.json") != "{three}" {
		t.Errorf("%v %s", err, p.read("a.json"))
	}
}

func TestDocumentFilesPutAside(t *testing.T) {
	p := newPapers(t)
	if err := p.files.Make(); err != nil {
		t.Fatal(err)
	}
	p.foreign("a.json", "{half")
	if sight := p.look(); len(sight.Found) != 0 {
		t.Errorf("at once: %+v", sight)
	}
	sight := p.until("it is no document", func(s DocumentSight) bool { return len(s.Found) == 1 })
	found := sight.Found[0]
	if found.Fault != "no object" {
		t.Errorf("%+v", found)
	}
	p.foreign("a.json", "{whole by now}")
	if name, err := p.files.PutAside(found, "corrupt"); !errors.Is(err, ErrDocumentChanged) {
		t.Errorf("%q %v", name, err)
	}
	if p.read("a.json") != "{whole by now}" {
		t.Errorf("%s", p.names())
	}
	p.foreign("large.json", "{"+strings.Repeat("x", documentFileMax)+"}")
	sight = p.until("all are found", func(s DocumentSight) bool { return len(s.Found) == 2 })
	for _, found := range sight.Found {
		name, err := p.files.PutAside(found, "refused")
		if err != nil || !strings.HasPrefix(name, found.Name+".refused-") {
			t.Errorf("%q %v", name, err)
		}
	}
	if sight = p.look(); len(sight.Found)+len(sight.Lies)+len(sight.Busy) != 0 {
		t.Errorf("%+v", sight)
	}
}

func TestDocumentFilesTouchNothingElse(t *testing.T) {
	p := newPapers(t)
	if err := p.files.Make(); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("{secret}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(path string) error{
		"link.json":   func(path string) error { return os.Symlink(outside, path) },
		"folder.json": func(path string) error { return os.Mkdir(path, 0o755) },
		"pipe.json":   func(path string) error { return unix.Mkfifo(path, 0o644) },
	} {
		if err := make(filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
		sight := p.look()
		stem := strings.TrimSuffix(name, ".json")
		if len(sight.Found) != 0 || sight.Busy[stem] == "" {
			t.Errorf("%s: %+v", name, sight)
		}
		if err := p.write(stem, "{ours}", ""); err == nil {
			t.Errorf("%s was written over", name)
		}
	}
	p.foreign("readme.txt", "{}")
	p.foreign(".hidden.json", "{}")
	p.foreign(".json", "{}")
	if sight := p.look(); len(sight.Found) != 0 {
		t.Errorf("%+v", sight)
	}
	if text, _ := os.ReadFile(outside); string(text) != "{secret}" {
		t.Errorf("%s", text)
	}
	if err := os.Rename(p.dir, p.dir+"-2"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.dir+"-2", p.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := p.files.Look(p.isOurs, sound); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("the folder itself is a link: %v", err)
	}
}

// A change is reported by the watch, not only by a poll, also if the folder is created later.
func TestDocumentFilesTell(t *testing.T) {
	p := newPapers(t)
	if err := p.files.Make(); err != nil {
		t.Fatal(err)
	}
	p.look()
	const files = 12 // one after the other: polls alone would need a minute for so many
	began := time.Now()
	for n := range files {
		p.foreign(fmt.Sprintf("a%d.json", n), "{}")
		p.until("it is found", func(s DocumentSight) bool { return len(s.Found) == n+1 })
	}
	if took := time.Since(began); took > (files-1)*file.PollEvery {
		t.Errorf("%d took %v", files, took)
	}
}
