package transfer

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/git/worktree"
)

const artifacts = RunsDir + "/r1/artifacts"

func archived(t *testing.T, root string, dirs ...string) []byte {
	t.Helper()
	a, err := ListFiles(root, dirs)
	must(t, err)
	defer a.Close()
	var b bytes.Buffer
	must(t, a.Write(&b))
	return b.Bytes()
}

// TestFilesTravel carries files, modes and folders, leaves out links, and replaces only what differs.
func TestFilesTravel(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	for _, name := range []string{"x", "deep/er/y", "new\nline", "latin-\xe9", "run.sh", "same", strings.Repeat("long", 60)} {
		put(t, a, artifacts+"/"+name, "content of "+name)
	}
	must(t, os.Chmod(filepath.Join(a, artifacts, "run.sh"), 0o700)) //nolint:gosec // its mode is the point
	must(t, os.Mkdir(filepath.Join(a, artifacts, "empty"), 0o700))
	must(t, os.Symlink("/etc/passwd", filepath.Join(a, artifacts, "link")))
	put(t, b, artifacts+"/same", "content of same")
	put(t, b, artifacts+"/x", "older")
	put(t, b, artifacts+"/own", "stays")
	old, err := os.Stat(filepath.Join(b, artifacts, "same"))
	must(t, err)
	must(t, ReadFiles(b, []string{artifacts}, bytes.NewReader(archived(t, a, artifacts, RunsDir+"/none")), nil))
	must(t, os.Remove(filepath.Join(a, artifacts, "link")))
	put(t, a, artifacts+"/own", "stays")
	want, got := files(t, a), files(t, b)
	if fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("%q became %q", want, got)
	}
	if now, err := os.Stat(filepath.Join(b, artifacts, "same")); err != nil || !os.SameFile(old, now) {
		t.Errorf("an equal file was replaced: %v", err)
	}
	if info, err := os.Stat(filepath.Join(b, artifacts, "empty")); err != nil || !info.IsDir() {
		t.Error(err)
	}
	if info, _ := os.Stat(filepath.Join(b, artifacts, "run.sh")); info.Mode().Perm() != 0o755 {
		t.Errorf("its mode is %v", info.Mode())
	}
	for _, dirs := range [][]string{
		nil,
		{"."},
		{".git"},
		{RunsDir},
		{RunsDir + "/../.."},
		{"/etc"},
		{RunsDir + "/r1/"},
		{RunsDir + "x/r1"},
		make([]string, 200),
	} {
		if _, err := ListFiles(a, dirs); err == nil {
			t.Errorf("%q was read", dirs)
		}
		if err := ReadFiles(a, dirs, bytes.NewReader(nil), nil); err == nil {
			t.Errorf("%q was written", dirs)
		}
	}
}

// TestFilesOfBoth leaves out files that are there as both had them. An archive that breaks off brings what came before, and that counts.
func TestFilesOfBoth(t *testing.T) {
	t.Parallel()
	here, there := t.TempDir(), t.TempDir()
	for _, name := range []string{"1", "2", "run.sh", "gone"} {
		put(t, here, artifacts+"/"+name, "sent")
	}
	list, err := ListFiles(here, []string{artifacts})
	must(t, err)
	defer list.Close()
	list.Wrote = map[string]string{}
	var sent bytes.Buffer
	must(t, list.Write(&sent))
	both := list.Wrote
	must(t, ReadFiles(there, []string{artifacts}, &sent, nil))
	put(t, there, artifacts+"/1", "of there")
	must(t, os.Chmod(filepath.Join(there, artifacts, "run.sh"), 0o700)) //nolint:gosec // its mode is the point
	must(t, os.Remove(filepath.Join(there, artifacts, "gone")))
	back := archived(t, there, artifacts)
	half := back[:bytes.Index(back, []byte(artifacts+"/2\x00"))+100]
	if err := ReadFiles(here, []string{artifacts}, bytes.NewReader(half), both); err == nil {
		t.Error("half an archive was read")
	}
	if got := files(t, here)[artifacts+"/1"]; got != "false of there" {
		t.Fatalf("the first file is %q", got)
	}
	put(t, here, artifacts+"/1", "newer")
	put(t, here, artifacts+"/2", "newer")
	for range 2 {
		must(t, ReadFiles(here, []string{artifacts}, bytes.NewReader(back), both))
		for name, want := range map[string]string{"1": "false newer", "2": "false newer", "run.sh": "true sent"} {
			if got := files(t, here)[artifacts+"/"+name]; got != want {
				t.Errorf("%s is %q", name, got)
			}
		}
		if len(both) != 3 {
			t.Errorf("both have %q", both)
		}
	}
}

// TestFilesThatVanish leaves out files that are gone when they are written, and those that are about to replace others.
func TestFilesThatVanish(t *testing.T) {
	t.Parallel()
	a, b := t.TempDir(), t.TempDir()
	for _, name := range []string{"run_state.json", ".run_state.json-238290891", ".other.json-1", ".x-y", "gone", "folder/gone"} {
		put(t, a, artifacts+"/"+name, name)
	}
	list, err := ListFiles(a, []string{artifacts})
	must(t, err)
	defer list.Close()
	must(t, os.Remove(filepath.Join(a, artifacts, "gone")))
	must(t, os.RemoveAll(filepath.Join(a, artifacts, "folder")))
	var sent bytes.Buffer
	must(t, list.Write(&sent))
	must(t, ReadFiles(b, []string{artifacts}, &sent, nil))
	must(t, os.Remove(filepath.Join(a, artifacts, ".run_state.json-238290891")))
	if want, got := files(t, a), files(t, b); fmt.Sprint(want) != fmt.Sprint(got) {
		t.Errorf("%q became %q", want, got)
	}
}

// TestPut never writes outside of the root, and never into a file's place.
func TestPut(t *testing.T) {
	t.Parallel()
	root, out := t.TempDir(), t.TempDir()
	put(t, out, "from", "content")
	from := filepath.Join(out, "from")
	put(t, root, artifacts+"/file", "is here")
	must(t, os.Symlink(out, filepath.Join(root, artifacts, "link")))
	for name, want := range map[string]bool{"a/b/new": true, "link/new": false, "file/new": false} {
		if done, err := Put(root, artifacts+"/"+name, from); err != nil || done != want {
			t.Errorf("%s: %t, %v", name, done, err)
		}
	}
	if _, err := Put(root, "../x", from); err == nil {
		t.Error("a file outside of the root")
	}
	if got := files(t, out); len(got) != 1 {
		t.Errorf("outside of the root: %q", got)
	}
	if got, err := os.ReadFile(filepath.Join(root, artifacts, "a/b/new")); err != nil || string(got) != "content" {
		t.Errorf("%q, %v", got, err)
	}
}

func tarOf(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = 4
		}
		h.Mode = 0o6777
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte("evil")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// trap is a root in which links lead elsewhere, and what is elsewhere.
func trap(t testing.TB) (root string, outside []string) {
	t.Helper()
	dir := t.TempDir()
	root = filepath.Join(dir, "root")
	outside = []string{filepath.Join(dir, "outside"), filepath.Join(root, ".git", "hooks")}
	for _, dir := range append(outside, filepath.Join(root, artifacts)) {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // a test's
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"out": outside[0], "hooks": "../../../../.git/hooks", "file": filepath.Join(outside[0], "x")} {
		if err := os.Symlink(to, filepath.Join(root, artifacts, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../.git/hooks", filepath.Join(root, RunsDir, "linked")); err != nil {
		t.Fatal(err)
	}
	return root, outside
}

func untouched(t testing.TB, root string, outside []string) {
	t.Helper()
	for _, dir := range outside {
		if inside, err := os.ReadDir(dir); err != nil || len(inside) > 0 {
			t.Errorf("%s has %v %v", dir, inside, err)
		}
	}
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			t.Error(err)
			return err
		}
		name, _ := filepath.Rel(root, path)
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() &&
			(!strings.HasPrefix(name, artifacts+"/") || info.Mode()&^0o755 != 0) {
			t.Errorf("%q has mode %v", name, info.Mode())
		}
		return nil
	})
}

// TestHostileArchives has entries that lead elsewhere, are no files, or are too many.
func TestHostileArchives(t *testing.T) {
	t.Parallel()
	reg := func(name string) []tar.Header { return []tar.Header{{Typeflag: tar.TypeReg, Name: name}} }
	many := make([]tar.Header, FilesEntriesMax+1)
	for i := range many {
		many[i] = tar.Header{Typeflag: tar.TypeDir, Name: artifacts + "/many/"}
	}
	for what, headers := range map[string][]tar.Header{
		"absolute": reg("/etc/x"), "above": reg(artifacts + "/../../x"), "another run": reg(RunsDir + "/r2/x"),
		"another prefix": reg(artifacts + "-x"),
		"through a link": reg(artifacts + "/out/x"), "into hooks": reg(artifacts + "/hooks/post-checkout"), "empty": reg(""),
		"a link": {
			{Typeflag: tar.TypeSymlink, Name: artifacts + "/l", Linkname: "/etc"},
			{Typeflag: tar.TypeReg, Name: artifacts + "/l/x"},
		},
		"a hard link":              {{Typeflag: tar.TypeLink, Name: artifacts + "/l", Linkname: "/etc/passwd"}},
		"a device":                 {{Typeflag: tar.TypeChar, Name: artifacts + "/dev"}},
		"a pipe":                   {{Typeflag: tar.TypeFifo, Name: artifacts + "/pipe"}},
		"many":                     many,
		"a folder through a link":  {{Typeflag: tar.TypeDir, Name: artifacts + "/out/"}},
		"a folder for a file":      {{Typeflag: tar.TypeDir, Name: artifacts + "/d/"}, {Typeflag: tar.TypeReg, Name: artifacts + "/d"}},
		"a file for the folder":    reg(artifacts),
		"a folder that goes above": {{Typeflag: tar.TypeDir, Name: artifacts + "/../../../x/"}},
	} {
		root, outside := trap(t)
		if err := ReadFiles(root, []string{artifacts}, bytes.NewReader(tarOf(t, headers...)), nil); err == nil {
			t.Errorf("%s was taken", what)
		}
		untouched(t, root, outside)
	}
	root, outside := trap(t)
	must(t, ReadFiles(root, []string{artifacts}, bytes.NewReader(tarOf(t, reg(artifacts+"/file")...)), nil)) // the link is replaced
	untouched(t, root, outside)
	if err := ReadFiles(root, []string{RunsDir + "/linked"}, bytes.NewReader(tarOf(t, reg(RunsDir+"/linked/x")...)), nil); err == nil {
		t.Error("a link was entered")
	}
	untouched(t, root, outside)
	huge := tar.Header{Typeflag: tar.TypeReg, Name: artifacts + "/huge", Size: FilesBytesMax + 1}
	var b bytes.Buffer
	must(t, tar.NewWriter(&b).WriteHeader(&huge))
	if err := ReadFiles(root, []string{artifacts}, &b, nil); err == nil || !strings.Contains(err.Error(), "256 MiB") {
		t.Error(err)
	}
	must(t, os.Truncate(filepath.Join(root, artifacts, "file"), FilesBytesMax+1))
	if _, err := ListFiles(root, []string{artifacts}); err == nil || !strings.Contains(err.Error(), "256 MiB") {
		t.Error(err)
	}
	cut := tarOf(t, reg(artifacts+"/cut")...)[:514]
	if err := ReadFiles(root, []string{artifacts}, bytes.NewReader(cut), nil); err == nil {
		t.Error("a part of a file was taken")
	}
	inside, err := os.ReadDir(filepath.Join(root, artifacts))
	must(t, err)
	if len(inside) != 3 {
		t.Errorf("what was not taken is there: %v", inside)
	}
}

// FuzzReadFiles reads any archive. Nothing is written outside of the folder.
func FuzzReadFiles(f *testing.F) {
	f.Add(tarOf(f, tar.Header{Typeflag: tar.TypeReg, Name: artifacts + "/a"}, tar.Header{Typeflag: tar.TypeDir, Name: artifacts + "/d/"}))
	f.Add(tarOf(f, tar.Header{Typeflag: tar.TypeReg, Name: artifacts + "/hooks/a"}))
	f.Add(tarOf(f,
		tar.Header{
			Typeflag: tar.TypeReg, Name: artifacts + "/" + strings.Repeat("x", 200), ModTime: time.Unix(1, 1),
			Format: tar.FormatPAX,
		}))
	f.Fuzz(func(t *testing.T, archive []byte) {
		root, outside := trap(t)
		_ = ReadFiles(root, []string{artifacts}, bytes.NewReader(archive), nil)
		untouched(t, root, outside)
	})
}

var goodSent = Sent{
	Run: "r1", Path: ".agents/worktrees/r1", Head: strings.Repeat("a", 40), Snapshot: strings.Repeat("b", 40),
	Branch: "refs/heads/fairlead/r1",
}

// TestSentIsChecked has descriptions that lead elsewhere.
func TestSentIsChecked(t *testing.T) {
	t.Parallel()
	if s, err := ParseSent(goodSent.String()); err != nil || s != goodSent {
		t.Fatal(s, err)
	}
	for _, change := range []func(*Sent){
		func(s *Sent) { s.Run = "../x" }, func(s *Sent) { s.Run = "-x" }, func(s *Sent) { s.Run = "a..b" },
		func(s *Sent) { s.Run = "a.lock" }, func(s *Sent) { s.Run = "" },
		func(s *Sent) { s.Path = "/etc" }, func(s *Sent) { s.Path = "../x" }, func(s *Sent) { s.Path = "a/../../x" },
		func(s *Sent) { s.Path = "" }, func(s *Sent) { s.Path = "." },
		func(s *Sent) { s.Path = ".git/hooks" }, func(s *Sent) { s.Path = "a/.GIT" }, func(s *Sent) { s.Path = "-x" },
		func(s *Sent) { s.Path = "a//b" }, func(s *Sent) { s.Path = "a\nb" },
		func(s *Sent) { s.Path = `a\b` }, func(s *Sent) { s.Path = strings.Repeat("a", 2000) },
		func(s *Sent) { s.Head = "HEAD" }, func(s *Sent) { s.Head = "--all" }, func(s *Sent) { s.Snapshot = strings.Repeat("a", 64) },
		func(s *Sent) { s.Snapshot = strings.Repeat("A", 40) },
		func(s *Sent) { s.Branch = "main" }, func(s *Sent) { s.Branch = "refs/tags/x" }, func(s *Sent) { s.Branch = "refs/heads/-x" },
		func(s *Sent) { s.Branch = "refs/heads/a\nb" },
	} {
		s := goodSent
		change(&s)
		if _, err := ParseSent(s.String()); err == nil {
			t.Errorf("%s was taken", s)
		}
	}
	for _, text := range []string{
		"", "{}", "null", goodSent.String() + "{}", strings.Replace(goodSent.String(), "{", `{"more":1,`, 1),
		goodSent.String() + strings.Repeat(" ", HeaderMax),
	} {
		if _, err := ParseSent(text); err == nil {
			t.Errorf("%.100q was taken", text)
		}
	}
}

// FuzzParseSent: what is taken is below the root and no flag, and is read again as it was.
func FuzzParseSent(f *testing.F) {
	f.Add(goodSent.String())
	f.Add(`{"run":"r1","path":"a/b","head":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSent(text)
		if err != nil {
			return
		}
		if again, err := ParseSent(s.String()); err != nil || again != s {
			t.Errorf("%v became %v: %v", s, again, err)
		}
		if !filepath.IsLocal(filepath.FromSlash(s.Path)) || strings.ContainsAny(s.String(), "\n\r\x00") {
			t.Errorf("%q was taken", text)
		}
		for _, field := range []string{s.Run, s.Path, s.Head, s.Snapshot, s.Branch} {
			if strings.HasPrefix(field, "-") {
				t.Errorf("%q is a flag", field)
			}
		}
	})
}

// TestLimits lowers the limits: a pack that is too large to be sent or taken, and files that no commit has.
func TestLimits(t *testing.T) { //nolint:paralleltest // it changes variables of the package
	p := begun(t)
	defer func(loose, pack int64) { looseBytesMax, packBytesMax = loose, pack }(looseBytesMax, packBytesMax)
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = byte(i * i >> 7)
	}
	put(t, p.tree(p.leader), "large", string(random))
	looseBytesMax = 1 << 19
	if _, _, err := carried(t.Context(), p.leader, p.host, p.tree(p.leader), 1); err == nil ||
		!strings.Contains(err.Error(), ".gitignore") {
		t.Error(err)
	}
	looseBytesMax, packBytesMax = 1<<30, 500
	if _, _, err := carried(t.Context(), p.leader, p.host, p.tree(p.leader), 1); err == nil ||
		!strings.Contains(err.Error(), "larger than") {
		t.Error(err)
	}
	packBytesMax = 8 << 30
	s, pack, err := carried(t.Context(), p.leader, p.host, p.tree(p.leader), 1)
	must(t, err)
	packBytesMax = 500
	if err := Unpack(t.Context(), p.host, bytes.NewReader(pack), s, ""); err == nil ||
		!strings.Contains(err.Error(), "maximum allowed size") {
		t.Error(err)
	}
	if err := Pack(t.Context(), worktree.Git{Dir: p.leader}, s, []string{"--all"}, &bytes.Buffer{}); err == nil {
		t.Error("a flag is taken for a commit")
	}
}

// TestPlaceOnHost has links and other things in the place of the checkout.
func TestPlaceOnHost(t *testing.T) {
	t.Parallel()
	for what, prepare := range map[string]func(p *pair){
		"a link above": func(p *pair) { must(t, os.Symlink(t.TempDir(), filepath.Join(p.host, ".agents"))) },
		"a link": func(p *pair) {
			must(t, os.MkdirAll(filepath.Dir(p.tree(p.host)), 0o755))
			must(t, os.Symlink(t.TempDir(), p.tree(p.host)))
		}, //nolint:gosec // a test's
		"a file":       func(p *pair) { put(t, p.host, ".agents/worktrees/r1", "x") },
		"files":        func(p *pair) { put(t, p.host, ".agents/worktrees/r1/x", "x") },
		"a file above": func(p *pair) { put(t, p.host, ".agents", "x") },
		"another repository": func(p *pair) {
			must(t, os.MkdirAll(p.tree(p.host), 0o755))
			sh(t, p.tree(p.host), "init", "-q")
			put(t, p.tree(p.host), "x", "x")
		}, //nolint:gosec // a test's
		"other hashes": func(p *pair) { sh(t, p.host, "init", "-q", "--object-format=sha256") },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := begun(t)
			prepare(p)
			s, pack, err := carried(t.Context(), p.leader, p.host, p.tree(p.leader), 0)
			must(t, err)
			if err = Unpack(t.Context(), p.host, bytes.NewReader(pack), s, ""); err == nil {
				t.Fatal("it was taken")
			}
			for _, words := range []string{"move it away", "use an empty folder"} {
				if strings.Contains(err.Error(), words) {
					return
				}
			}
			t.Errorf("it does not say what to do: %v", err)
		})
	}
}

// TestBranchOnHost has a repository on the host with a branch of the run's name, which a person is on: it stays as it is.
func TestBranchOnHost(t *testing.T) {
	t.Parallel()
	p := begun(t)
	sh(t, p.host, "init", "-q")
	sh(t, p.host, "fetch", "-q", p.leader, "main:fairlead/r1")
	sh(t, p.host, "checkout", "-q", "fairlead/r1")
	sh(t, p.host, "commit", "-q", "--allow-empty", "-m", "mine")
	mine := sh(t, p.host, "rev-parse", "fairlead/r1")
	p.send("")
	put(t, p.tree(p.host), "made", "by an agent\n")
	sh(t, p.tree(p.host), "add", "made")
	sh(t, p.tree(p.host), "commit", "-q", "-m", "made")
	_, err := p.fetch()
	must(t, err)
	p.equal()
	if at := sh(t, p.host, "rev-parse", "fairlead/r1"); at != mine {
		t.Errorf("the branch on the host is at %s, and was at %s", at, mine)
	}
}
