package diff

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// git runs git in a folder.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "git",
		append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

// change makes two commits and reads what git prints about them.
func change(t *testing.T, before, after map[string]string, then func(dir string)) ([]Entry, func(name string) ChangedRows) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir := t.TempDir()
	git(t, dir, "init", "-q")
	for _, files := range []map[string]string{before, after} {
		git(t, dir, "rm", "-q", "-r", "--ignore-unmatch", ".")
		for name, text := range files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if then != nil && len(git(t, dir, "rev-list", "--all")) > 0 {
			then(dir)
		}
		git(t, dir, "add", "-A")
		git(t, dir, "commit", "-q", "--allow-empty", "-m", "x")
	}
	all, _, err := ReadList(git(t, dir, "diff", "--raw", "--numstat", "-z", "--no-abbrev", "-M", "HEAD^", "HEAD"))
	if err != nil {
		t.Fatal(err)
	}
	return all, func(name string) ChangedRows {
		t.Helper()
		for _, e := range all {
			if e.Name == name {
				rows, err := Rows(e.Name,
					git(t, dir, append([]string{"--literal-pathspecs", "diff", "-M", "HEAD^", "HEAD", "--"}, e.Paths...)...))
				if err != nil {
					t.Fatal(err)
				}
				return rows
			}
		}
		t.Fatalf("no file %q in %+v", name, all)
		return ChangedRows{}
	}
}

// text is a row in short: its kind, its numbers and its words.
func text(r ChangedRow) string {
	return map[string]string{AddRow: "+", DelRow: "-", SameRow: " ", HunkRow: "@", NoteRow: "!"}[r.Kind] + whole(r.Tokens)
}

func texts(rows []ChangedRow) string {
	var all []string
	for _, r := range rows {
		all = append(all, text(r))
	}
	return strings.Join(all, "\n")
}

func TestKindsOfChanges(t *testing.T) {
	t.Parallel()
	same := strings.Repeat("a line that stays\n", 20)
	list, rows := change(
		t,
		map[string]string{
			"moved.txt": same, "gone.txt": "x\n", "dos.txt": "a\r\nb\r\n", "mixed.txt": "a\r\nb\n", "end.txt": "a",
			"bin": "\x00\x01", "mode.sh": "echo\n", "odd\nname\t\"é\" <b>.txt": "1\n", "latin\xff.txt": "1\n",
		},
		map[string]string{
			"to/moved.txt": same + "more\n", "new.txt": "n\n", "dos.txt": "a\r\nc\r\n", "mixed.txt": "a\r\nc\n",
			"end.txt": "b", "bin": "\x00\x02", "mode.sh": "echo\n", "odd\nname\t\"é\" <b>.txt": "2\n", "latin\xff.txt": "\xff\xfe\n",
		},
		func(dir string) {
			if err := os.Chmod(filepath.Join(dir, "mode.sh"), 0o700); err != nil { //nolint:gosec // it is what the test is about
				t.Fatal(err)
			}
		},
	)
	got := map[string]ChangedFile{}
	for _, e := range list {
		got[e.Name] = e.ChangedFile
	}
	odd, latin := "odd\nname\t\"é\" <b>.txt", "latin\uFFFD.txt"
	for name, want := range map[string]ChangedFile{
		"to/moved.txt": {Name: "to/moved.txt", OldName: "moved.txt", Status: Renamed, Added: 1},
		"gone.txt":     {Name: "gone.txt", Status: Deleted, Deleted: 1},
		"new.txt":      {Name: "new.txt", Status: Added, Added: 1},
		"bin":          {Name: "bin", Status: Modified, Binary: true},
		"mode.sh":      {Name: "mode.sh", Status: Modified, OldMode: "file", NewMode: "executable file"},
		odd:            {Name: odd, Status: Modified, Added: 1, Deleted: 1},
		latin:          {Name: latin, Status: Modified, Added: 1, Deleted: 1},
	} {
		if got[name] != want {
			t.Errorf("%q is %+v, want %+v", name, got[name], want)
		}
	}
	for name, want := range map[string]string{
		"gone.txt":  "@@@ -1,1 +0,0 @@\n-x",
		"dos.txt":   "@@@ -1,2 +1,2 @@\n a\n-b\n+c",
		"mixed.txt": "@@@ -1,2 +1,2 @@\n a\r\n-b\n+c",
		"end.txt":   "@@@ -1,1 +1,1 @@\n-a\n!no newline at the end of the file\n+b\n!no newline at the end of the file",
		"mode.sh":   "",
		odd:         "@@@ -1,1 +1,1 @@\n-1\n+2",
		latin:       "@@@ -1,1 +1,1 @@\n-1\n+\uFFFD",
	} {
		if got := texts(rows(name).Rows); got != want {
			t.Errorf("%q:\n%s\nwant\n%s", name, got, want)
		}
	}
	if !rows("dos.txt").CRLF || rows("mixed.txt").CRLF {
		t.Error("CR LF is to be said of the file whose lines all have it, and of no other")
	}
}

func TestColours(t *testing.T) {
	t.Parallel()
	_, rows := change(t, map[string]string{"a.go": "package a\n\nfunc f() int { return 1 }\n"},
		map[string]string{"a.go": "package a\n\nfunc f() int { return 23 } // <b>\n"}, nil)
	got := rows("a.go").Rows
	last := got[len(got)-1]
	var classes []string
	changed := ""
	for _, tok := range last.Tokens {
		classes = append(classes, tok.Class+":"+tok.Text)
		if tok.Changed {
			changed += tok.Text
		}
	}
	if all := strings.Join(classes, "|"); !strings.Contains(all, "key:func") || !strings.Contains(all, "func:f") ||
		!strings.Contains(all, "num:") || !strings.Contains(all, "note:// <b>") {
		t.Errorf("the tokens are %s", all)
	}
	if changed != "23 } // <b>" && !strings.HasPrefix(changed, "23") {
		t.Errorf("changed is %q", changed)
	}
}

// Every lexer that is embedded can be used.
func TestLexersLoad(t *testing.T) {
	t.Parallel()
	for _, l := range registry().Lexers {
		if _, err := l.Tokenise(nil, "a\n"); err != nil {
			t.Errorf("%s: %v", l.Config().Name, err)
		}
		if got := whole(colour(l, []string{"<a b=\"c\"> // x", "/* y"})[1]); got != "/* y" {
			t.Errorf("%s: the text became %q", l.Config().Name, got)
		}
	}
}

func TestHostileText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 7<<20)
	_, rows := change(t, map[string]string{"a.js": "1\n"},
		map[string]string{"a.js": long + "\n<script>alert(1)</script>\n\x1b[31m \u202eabc\n"}, nil)
	got := rows("a.js")
	if len(got.Rows) != 5 || got.Rows[2].MoreBytes != len(long)-lineBytesMax || len(whole(got.Rows[2].Tokens)) != lineBytesMax {
		t.Fatalf("%d rows, %d more bytes", len(got.Rows), got.Rows[2].MoreBytes)
	}
	if want := "+<script>alert(1)</script>"; text(got.Rows[3]) != want {
		t.Errorf("%q", text(got.Rows[3]))
	}
	many := strings.Repeat("a\n", rowsMax+50)
	_, rows = change(t, map[string]string{"m.txt": ""}, map[string]string{"m.txt": many}, nil)
	if m := rows("m.txt"); len(m.Rows) != rowsMax || m.MoreRows != 51 {
		t.Errorf("%d rows, %d more", len(m.Rows), m.MoreRows)
	}
	deep := strings.Repeat("((((((((((", 20_000) // for patterns that go back
	began := time.Now()
	colour(lexer("a.js"), strings.Split(strings.Repeat(deep[:1900]+"\n", 200), "\n"))
	if took := time.Since(began); took > 20*colourTimeMax {
		t.Errorf("colours took %v", took)
	}
}

func FuzzRows(f *testing.F) {
	f.Add("a.go",
		"diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1 +1,2 @@\n-a\r\n+`b\n+\xff<script>\n\\ No newline at end of file\n")
	f.Add("a.html", "diff --git a/x b/x\nnew file mode 100644\nBinary files /dev/null and b/x differ\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		got, err := Rows(name, text)
		if err != nil {
			return
		}
		if len(got.Rows) > rowsMax {
			t.Fatalf("%d rows", len(got.Rows))
		}
		for _, r := range got.Rows {
			if words := whole(r.Tokens); !utf8.ValidString(words) || len(words) > 3*lineBytesMax && code(r) {
				t.Fatalf("row %q", words)
			}
		}
	})
}

func FuzzReadList(f *testing.F) {
	zero := strings.Repeat("0", 40)
	f.Add(":100644 100644 " + zero + " " + zero + " R100\x00old\x00new\x000\t0\t\x00old\x00new\x00")
	f.Add(":000000 100644 " + zero + " " + zero + " A\x00a\nb\x001\t0\ta\nb\x00")
	f.Fuzz(func(t *testing.T, text string) {
		all, _, err := ReadList(text)
		if err == nil && len(all) > FilesMax {
			t.Fatal("too many")
		}
		for _, e := range all {
			if !utf8.ValidString(e.Name) || len(e.Paths) == 0 {
				t.Fatalf("%+v", e)
			}
		}
	})
}
