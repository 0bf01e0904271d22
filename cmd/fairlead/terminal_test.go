package main

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/spf13/cobra"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/read/view"
)

// unseen is what others may write: each kind of text that a terminal obeys or hides.
const unseen = "\x1b]52;c;ZXZpbA==\x07 \x1b]0;title\x1b\\ \x1b[2J \x1b[35m \u009b35m \u202e\u2066 \u200b\ufeff \x7f\b\r-"

// ours are the sequences that Fairlead itself may send to a terminal; colour 35 is not among them.
var ours = regexp.MustCompile(`\x1b\[(?:[0-27]?m|3[1-4]m|38;2;\d+;\d+;\d+m|H|K|J|\d+A)`)

// unshown says what is left in a terminal's output that it would obey or hide. The terminal itself ends lines with CR LF,
// and a waiting line is drawn over with CR.
func unshown(seen string) string {
	seen = strings.ReplaceAll(ours.ReplaceAllString(seen, ""), "\r", "")
	for _, r := range seen {
		if r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0) || strings.ContainsRune("\u202e\u2066\u200b\ufeff", r) {
			return strconv.QuoteRune(r)
		}
	}
	return ""
}

// A command's output and errors go through the filter on a terminal, whichever command it is: each one is given a flag that it
// does not know, and repeats it.
func TestEveryCommandOnATerminal(t *testing.T) {
	t.Parallel()
	screen, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer screen.Close()
	seen := make(chan string)
	go func() {
		all, _ := io.ReadAll(screen) // it ends with an error when the terminal is closed
		seen <- string(all)
	}()
	var every func(cmd *cobra.Command, path []string)
	n := 0
	every = func(cmd *cobra.Command, path []string) {
		n++
		if code := run(append(slices.Clone(path), "--no"+unseen, unseen), strings.NewReader(""), terminal,
			terminal); code != cli.ExitUsage && !cmd.DisableFlagParsing {
			t.Errorf("%q: exit %d", path, code)
		}
		for _, below := range cmd.Commands() {
			every(below, append(slices.Clone(path), below.Name()))
		}
	}
	for _, verb := range (&app{&cli.App{}}).root("").Commands() {
		if verb.DisableFlagParsing || verb.Hidden {
			continue // it is for programs, and reads standard input
		}
		every(verb, []string{verb.Name()})
	}
	terminal.Close()
	all := <-seen
	if bad := unshown(all); bad != "" {
		t.Errorf("a terminal is sent %s: %q", bad, all)
	}
	if got := strings.Count(all, "␛]52;c;ZXZpbA"); got < n || n < 60 {
		t.Errorf("%d of %d commands show what they were given", got, n)
	}
}

// No code of a command prints past the filter: only main knows the streams of the process, and control sequences are Own's.
func TestNothingPrintsPastTheFilter(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"../../cli", "."} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == "main.go" {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			own := map[ast.Node]bool{}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Own" {
						own[n.Args[0]] = true
					}
				case *ast.SelectorExpr:
					of, ok := n.X.(*ast.Ident)
					if !ok {
						break
					}
					switch of.Name + "." + n.Sel.Name {
					case "os.Stdout", "os.Stderr", "fmt.Print", "fmt.Printf", "fmt.Println", "log.Print", "log.Printf", "log.Println":
						t.Errorf("%s: %s.%s prints past the filter; use App.Out or App.Err", files.Position(n.Pos()), of.Name, n.Sel.Name)
					}
				case *ast.BasicLit:
					if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && !own[n] && text != "\x1b[" &&
						strings.ContainsAny(text, "\x1b\r\x07\b") && !strings.Contains(n.Value, "\\r\\n") {
						t.Errorf("%s: the filter shows %s; use termtext.Own", files.Position(n.Pos()), n.Value)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// coloured runs a command on a terminal with colours, and returns what the terminal was sent.
func (s *rig) coloured(words ...string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), rigWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{words[0], "--dir", s.dir}, words[1:]...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "NO_COLOR=") }), "TERM=xterm",
		"PAGER=cat", "COLORTERM=truecolor")
	screen, err := pty.Start(cmd)
	if err != nil {
		s.t.Fatal(err)
	}
	defer screen.Close()
	seen, _ := io.ReadAll(screen) // a terminal whose program is gone ends with an error
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("%q: %v", words, err)
	}
	return string(seen)
}

// What an agent writes into its files, says and reports is shown on a terminal and not obeyed, with colours on; in a pipe
// the patch has every byte, and JSON escapes.
func TestHostileTaskOnATerminal(t *testing.T) {
	t.Parallel()
	dir, _ := taskRepo(t, "*\n!.gitignore\n!notes.txt\n")
	s := newRigIn(t, dir, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: [sh, " + dir +
			"/work.sh], workspace: ada, description: \"d \\e]52;c;x\\a\"}\n",
		"ada/.keep": "",
		"hostile":   unseen + "\n",
		"work.sh":   "cat '" + dir + "/hostile'\ncat '" + dir + "/hostile' >> notes.txt\n",
	})
	s.must("task", "write "+unseen, "--agent", "ada")
	client, err := apiclient.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	wait.Until(t, "the task waits for a person", func() bool {
		r, err := client.Runs.Show(t.Context(), "T1")
		if err != nil {
			t.Fatal(err)
		}
		return r.Task.Status == view.TaskNeedsYou
	})
	for _, words := range [][]string{
		{"tasks"},
		{"inbox"},
		{"run", "show", "T1"},
		{"run", "list"},
		{"diff", "T1"},
		{"diff", "T1", "--stat"},
		{"events"},
		{"why", "ada"},
		{"ps"},
		{"doctor", "--quick"},
		{"search", "write"},
		{"agents"},
		{"watch", "ada-1"},
		{"run", "log", "T1", "work"},
		{"comment", "T1", unseen + ":1", "x"},
		{"diff", unseen},
		{"why", unseen},
		{"merge", "T1", unseen},
		{"usage"},
	} {
		seen := s.coloured(words...)
		if bad := unshown(seen); bad != "" || seen == "" {
			t.Errorf("%q sends %s: %q", words, bad, seen)
		}
	}
	if seen := s.coloured("diff", "T1"); !strings.Contains(seen, "␛]52;c;ZXZpbA==␇") || !strings.Contains(seen, "\x1b[32m+") {
		t.Errorf("the diff on a terminal does not show what it replaces, or has no colours: %q", seen)
	}
	if out, code := s.fairlead("diff", "T1"); code != cli.ExitDone || !strings.Contains(out, "+"+unseen+"\n") {
		t.Errorf("the patch in a pipe (exit %d) is %q", code, out)
	}
	for _, words := range [][]string{{"tasks", "--json"}, {"events", "--json"}, {"inbox", "--json"}} {
		if out, _ := s.fairlead(words...); unshown(out) != "" && !strings.Contains("\u200b\ufeff", strings.Trim(unshown(out), "'")) &&
			!strings.Contains(unshown(out), "u200b") && !strings.Contains(unshown(out), "ufeff") {
			t.Errorf("%q holds %s: %q", words, unshown(out), out)
		}
	}
}
