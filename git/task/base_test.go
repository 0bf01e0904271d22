package task

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	state "github.com/fairlead-dev/fairlead/core/task"
)

// both changes the same line in a task's folder and on the base.
func (w *world) both(name, agent, person string) {
	w.Helper()
	w.put(w.task.Tree, name, agent)
	w.put(w.repo, name, person)
	w.git(w.repo, "add", name)
	w.git(w.repo, "commit", "--quiet", "-m", "the person's "+name)
}

// sendBack lands a task as it is shown, which cannot land, and then sends it back, as a person does.
func (w *world) sendBack() (words string, err error) {
	w.Helper()
	_, err = w.land(&w.task)
	return w.sendBackAfter(err)
}

// sendBackAfter sends a task back after a landing.
func (w *world) sendBackAfter(landing error) (words string, err error) {
	w.Helper()
	f := FailureOf(landing)
	if f.Kind != state.FailedConflict && f.Kind != state.FailedChecks {
		w.Fatalf("landed: %v", landing)
	}
	return w.task.SendBack(w.Context(), f)
}

func (w *world) read(name string) string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.task.Tree, name))
	w.must(err)
	return string(text)
}

// A task that conflicts with its base waits for a person, and its folder stays as it is. If it is sent back, its agent gets it with the
// base merged and the conflicts left in its folder. What ends the merge, the agent's commit or what it has left, lands.
func TestBaseIsMerged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		commits bool // the agent has committed its own work
		ends    func(w *world)
	}{
		"a commit": {true, func(w *world) {
			w.git(w.task.Tree, "commit", "--quiet", "-a", "-m", "merged")
		}},
		"a commit of work that was loose": {false, func(w *world) {
			w.git(w.task.Tree, "commit", "--quiet", "-a", "-m", "merged")
		}},
		"git add":                     {true, func(w *world) { w.git(w.task.Tree, "add", "a.txt") }},
		"nothing but the file":        {true, func(*world) {}},
		"nothing but the file, loose": {false, func(*world) {}},
		"on another host": {true, func(w *world) { // its commit comes without the merge, which is still open here
			w.git(w.task.Tree, "read-tree", "HEAD")
			w.must(os.Rename(filepath.Join(w.task.Tree, ".git", mergeHead), filepath.Join(w.task.Tree, ".git", "x")))
			w.git(w.task.Tree, "add", "--all")
			w.git(w.task.Tree, "commit", "--quiet", "-m", "theirs")
			w.must(os.Rename(filepath.Join(w.task.Tree, ".git", "x"), filepath.Join(w.task.Tree, ".git", mergeHead)))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := copyOf(t, fmt.Sprint("merged, and it was committed: ", c.commits), func(w *world) {
				firstTask(w)
				w.put(w.task.Tree, "loose.txt", "loose\n")
				w.put(w.repo, "new.txt", "new\n")
				w.git(w.repo, "add", "new.txt")
				w.both("a.txt", "one\nagent\nthree\n", "one\nperson\nthree\n")
				if c.commits {
					w.git(w.task.Tree, "commit", "--quiet", "-a", "-m", "work")
				}
				before := w.git(w.task.Tree, "status", "--porcelain")
				_, err := w.land(&w.task)
				if AsksAgain(err, "main") != "did not land: conflicts with main in a.txt (1 line)" ||
					w.git(w.task.Tree, "status", "--porcelain") != before || w.read("a.txt") != "one\nagent\nthree\n" {
					w.Fatalf("landed: %v, %+v, %s", err, FailureOf(err), w.git(w.task.Tree, "status", "--porcelain"))
				}
				for range 2 { // a process that died may do it again
					if words, err := w.sendBackAfter(err); err != nil || !strings.HasPrefix(words, "it conflicts with branch main. Branch main has been merged") ||
						!strings.Contains(words, "the conflicts are left in these files: a.txt. Resolve") {
						w.Fatalf("sent back: %q, %v", words, err)
					}
				}
			})
			tip := w.git(w.repo, "rev-parse", "main")
			if got := w.git(w.task.Tree, "diff", "--name-only", "--diff-filter=U"); got != "a.txt" ||
				w.git(w.task.Tree, "rev-parse", "MERGE_HEAD") != tip {
				t.Errorf("unmerged: %q", got)
			}
			if got := w.read("a.txt"); !strings.Contains(got, "<<<<<<< HEAD\nagent\n=======\nperson\n>>>>>>> "+tip) ||
				w.read("new.txt") != "new\n" || w.read("loose.txt") != "loose\n" {
				t.Errorf("the file has %q", got)
			}
			if err := w.task.Check(t.Context(), os.Stderr); !errors.As(err, new(*CheckFailed)) ||
				!strings.Contains(err.Error(), "have conflicts: a.txt. Resolve them") {
				t.Errorf("checked: %v", err)
			}
			w.git(w.task.Tree, "fsck", "--strict")
			w.put(w.task.Tree, "a.txt", "one\nagent and person\nthree\n")
			c.ends(w)
			w.must(w.task.Check(t.Context(), os.Stderr))
			s, err := w.task.Show(t.Context(), w.task.Run)
			w.must(err)
			if s.From != tip || s.Files != 2 || strings.Contains(strings.Join(s.Stat, "\n"), "marker") {
				t.Errorf("shown: %+v", s)
			}
			w.task.Asked = s.Asked
			done, err := lands(t.Context(), w.task, os.Stderr)
			w.must(err)
			if w.onBase("a.txt") != "one\nagent and person\nthree" || w.onBase("loose.txt") != "loose" || w.onBase("new.txt") != "new" ||
				done.Later {
				t.Errorf("%+v: %q", done, w.onBase("a.txt"))
			}
		})
	}
}

// A file with lines of a conflict is not offered without a word about it, whatever was done in git.
func TestMarkersAreNotOffered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		attributes string
		content    string // of a.txt when the round ends; empty: as the merge has left it
		git        [][]string
		back       bool // the check sends it back
		said       bool // the question says it
	}{
		"as it was left": {back: true},
		"added":          {git: [][]string{{"add", "a.txt"}}, back: true},
		"committed":      {git: [][]string{{"commit", "--quiet", "-a", "-m", "done"}}, back: true},
		"more signs": {
			attributes: "a.txt conflict-marker-size=12",
			git:        [][]string{{"commit", "--quiet", "-a", "-m", "done"}}, back: true,
		},
		"fewer signs": {
			attributes: "a.txt conflict-marker-size=3",
			git:        [][]string{{"commit", "--quiet", "-a", "-m", "done"}}, back: true,
		},
		"no difference is shown": {
			attributes: "a.txt -diff", git: [][]string{{"commit", "--quiet", "-a", "-m", "done"}},
			back: true,
		},
		"the last line is gone": {
			content: "one\n<<<<<<< HEAD\nagent\n=======\nperson\nthree\n",
			git:     [][]string{{"commit", "--quiet", "-a", "-m", "done"}}, said: true,
		},
		"the last line is gone, not shown": {
			attributes: "a.txt -diff", content: "<<<<<<< HEAD\nagent\n=======\n",
			git: [][]string{{"commit", "--quiet", "-a", "-m", "done"}}, said: true,
		},
		"many signs, and not shown": {attributes: "a.txt -diff", content: "<<<<<<<<<<<< HEAD\nagent\n============\n", said: true},
		"of another merge": {
			content: "one\n<<<<<<< ours\nagent\n=======\nperson\n>>>>>>> theirs\n",
			git:     [][]string{{"add", "a.txt"}}, said: true,
		},
		"resolved":                   {content: "one\nboth\nthree\n"},
		"resolved, with other signs": {content: "one\nboth\n=======\n<<<<\n> quoted\nthree\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := copyOf(t, "conflict, "+c.attributes, func(w *world) {
				firstCommit(w)
				if c.attributes != "" {
					w.put(w.repo, ".gitattributes", c.attributes+"\n")
					w.git(w.repo, "add", ".")
					w.git(w.repo, "commit", "--quiet", "-m", "attributes")
				}
				w.task = w.give("T1", "")
				w.both("a.txt", "one\nagent\nthree\n", "one\nperson\nthree\n")
				w.must(func() error { _, err := w.sendBack(); return err }())
			})
			if c.content != "" {
				w.put(w.task.Tree, "a.txt", c.content)
			}
			for _, args := range c.git {
				w.git(w.task.Tree, args...)
			}
			if err := w.task.Check(t.Context(), os.Stderr); errors.As(err, new(*CheckFailed)) != c.back || !c.back && err != nil {
				t.Errorf("checked: %v", err)
			}
			s, err := w.task.Show(t.Context(), w.task.Run)
			if errors.As(err, new(*Blocked)) != c.back || !c.back && err != nil {
				t.Errorf("shown: %v", err)
			}
			if said := strings.Contains(strings.Join(s.Stat, "\n"), "look like conflict markers: a.txt"); said != c.said {
				t.Errorf("said: %q", s.Stat)
			}
		})
	}
}

// Conflicts without lines in a file are the index's until the file is changed.
func TestOtherConflicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		agent, person func(w *world, dir string)
		files         string
		resolve       func(w *world)
		after         string // the names on the base
	}{
		"deleted here": {
			func(w *world, dir string) { w.must(os.Remove(filepath.Join(dir, "a.txt"))) },
			func(w *world, dir string) { w.put(dir, "a.txt", "one\nperson\nthree\n") },
			"a.txt", func(w *world) { w.git(w.task.Tree, "rm", "--quiet", "a.txt") }, ".gitignore",
		},
		"deleted there": {
			func(w *world, dir string) { w.put(dir, "a.txt", "one\nagent\nthree\n") },
			func(w *world, dir string) { w.must(os.Remove(filepath.Join(dir, "a.txt"))) },
			"a.txt", func(w *world) { w.must(os.Remove(filepath.Join(w.task.Tree, "a.txt"))) }, ".gitignore",
		},
		"deleted there, and kept": {
			func(w *world, dir string) { w.put(dir, "a.txt", "one\nagent\nthree\n") },
			func(w *world, dir string) { w.must(os.Remove(filepath.Join(dir, "a.txt"))) },
			"a.txt", func(w *world) { w.git(w.task.Tree, "add", "a.txt") }, ".gitignore a.txt",
		},
		"binary": {
			func(w *world, dir string) { w.put(dir, "b", "\x00agent\n") },
			func(w *world, dir string) { w.put(dir, "b", "\x00person\n") },
			"b", func(w *world) { w.put(w.task.Tree, "b", "\x00both\n") }, ".gitignore a.txt b",
		},
		"links": {
			func(w *world, dir string) { w.must(os.Symlink("agent", filepath.Join(dir, "l"))) },
			func(w *world, dir string) { w.must(os.Symlink("person", filepath.Join(dir, "l"))) },
			"l", func(w *world) { w.must(os.Remove(filepath.Join(w.task.Tree, "l"))) }, ".gitignore a.txt",
		},
		"a folder and a file": {
			func(w *world, dir string) { w.put(dir, "x/y", "agent\n") },
			func(w *world, dir string) { w.put(dir, "x", "person\n") },
			"x~main", func(w *world) {
				name := "x~" + w.git(w.repo, "rev-parse", "main")
				w.git(w.task.Tree, "rm", "--quiet", "--cached", name)
				w.must(os.Remove(filepath.Join(w.task.Tree, name)))
			}, ".gitignore a.txt x/y",
		},
		"a name with a line break, and one that is no text": {
			func(w *world, dir string) { w.put(dir, "n\nb\xff", "agent\n") },
			func(w *world, dir string) { w.put(dir, "n\nb\xff", "person\n") },
			"n\nb\xff", func(w *world) { w.put(w.task.Tree, "n\nb\xff", "both\n") }, ".gitignore a.txt n\nb\xff",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c.agent(w, w.task.Tree)
			c.person(w, w.repo)
			w.git(w.repo, "add", "--all")
			w.git(w.repo, "commit", "--quiet", "-m", "the person's")
			tip := w.git(w.repo, "rev-parse", "main")
			files := strings.ReplaceAll(c.files, "~main", "~"+tip)
			if words, err := w.sendBack(); err != nil || !strings.Contains(words, "in these files: "+files+". Resolve") {
				t.Fatalf("sent back: %q, %v", words, err)
			}
			if err := w.task.Check(t.Context(), os.Stderr); !errors.As(err, new(*CheckFailed)) {
				t.Errorf("nothing was done, and it is checked: %v", err)
			}
			c.resolve(w)
			w.must(w.task.Check(t.Context(), os.Stderr))
			w.must(func() error { _, err := w.land(&w.task); return err }())
			if got := strings.Join(strings.Split(strings.TrimSuffix(w.git(w.repo, "ls-tree", "-r", "-z", "--name-only", "main"), "\x00"),
				"\x00"), " "); got != c.after {
				t.Errorf("the base has %q", got)
			}
		})
	}
}

// A task with a conflict in a file below .claude is not sent back: a person resolves it. Its folder stays as it is. Files with similar
// names go to the agent.
func TestHeldConflicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files []string // of both sides
		held  bool
	}{
		"settings":                   {[]string{".claude/settings.json"}, true},
		"settings and work":          {[]string{".claude/settings.json", "a.txt"}, true},
		"of another folder":          {[]string{"sub/.claude/agents/x.md"}, true},
		"in other letters":           {[]string{".CLAUDE/settings.json"}, true},
		"a file of the name":         {[]string{".claude"}, true},
		"without the dot":            {[]string{"claude/settings.json"}, false},
		"a name that begins like it": {[]string{".claude.json", ".claudeignore/x"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			for _, file := range c.files {
				w.both(file, "agent\n", "person\n")
			}
			words, err := w.sendBack()
			if !c.held {
				if err != nil || !strings.Contains(words, "in these files: "+strings.Join(c.files, ", ")) {
					t.Fatalf("sent back: %q, %v", words, err)
				}
				return
			}
			want := "it conflicts with branch main in " + c.files[0] +
				", and no agent may write below .claude. Resolve it by hand: fairlead checkout T1"
			if !errors.As(err, new(*Blocked)) || err.Error() != want {
				t.Fatalf("sent back: %q, %v", words, err)
			}
			for _, file := range c.files {
				if w.read(file) != "agent\n" {
					t.Errorf("%s has %q", file, w.read(file))
				}
			}
			// an agent's own merge has such a conflict, too
			w.must(w.task.Refresh(t.Context()))
			w.git(w.task.Tree, "add", "--all")
			w.git(w.task.Tree, "commit", "--quiet", "-m", "mine")
			w.git(w.task.Tree, "fetch", "--quiet", "origin", "main")
			_, _ = (&play{T: t}).try(w.task.Tree, "merge", "--quiet", "FETCH_HEAD")
			if err := w.task.Check(t.Context(), os.Stderr); !errors.As(err, new(*Blocked)) ||
				!strings.Contains(err.Error(), "then run `fairlead run resume T1`") {
				t.Errorf("checked: %v", err)
			}
		})
	}
}

// Checks that fail on the merged files fail for the agent, too: it has the base in its folder. Without a newer base it gets none.
func TestBaseForFailedChecks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		person map[string]string
		says   string
		merged bool
	}{
		"it applies": {map[string]string{"there": ""}, "merged into your folder, and no conflict is left there", true},
		"later work does not": {
			map[string]string{"there": "", "later": "person\n"},
			"the conflicts are left in these files: later. Resolve", true,
		},
		"held later work": {map[string]string{"there": "", ".claude/later": "person\n"}, "no agent may write below .claude", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.put(w.task.Tree, "here", "")
			w.task.Checks = []string{"! test -e here || ! test -e there"}
			w.must(w.task.Check(t.Context(), os.Stderr))
			w.ask(&w.task)
			for name, text := range c.person {
				w.both(name, "agent\n", text)
				if name == "there" {
					w.must(os.Remove(filepath.Join(w.task.Tree, name)))
				}
			}
			_, err := lands(t.Context(), w.task, os.Stderr)
			said := AsksAgain(err, "main")
			words, err := w.sendBackAfter(err)
			if err != nil {
				words = err.Error()
			}
			if said == "" || !strings.Contains(words, c.says) || err == nil && !strings.HasPrefix(words, said+". ") {
				t.Fatalf("landed: %q, sent back: %q, %v", said, words, err)
			}
			if _, err := os.Lstat(filepath.Join(w.task.Tree, "there")); (err == nil) != c.merged {
				t.Errorf("the base in the folder: %v", err)
			}
			if !c.merged {
				return
			}
			if got := w.git(w.task.Tree, "rev-parse", "MERGE_HEAD"); got != w.git(w.repo, "rev-parse", "main") {
				t.Errorf("merged: %s", got)
			}
		})
	}
}

// A merge whose process was killed is made again, and is the same in the end. Nothing of the folder is lost.
func TestBaseKilled(t *testing.T) {
	t.Parallel()
	for name, half := range map[string]func(w *world, tip string){
		"before git has begun": func(*world, string) {},
		"after one file":       func(w *world, _ string) { w.put(w.task.Tree, "new.txt", "new\n") },
		"in the middle of a file": func(w *world, _ string) {
			w.put(w.task.Tree, "a.txt", "one\n<<<<<<< HEAD\nage")
		},
		"after all files": func(w *world, tip string) {
			w.put(w.task.Tree, "new.txt", "new\n")
			w.put(w.task.Tree, "a.txt", "one\n<<<<<<< HEAD\nagent\n=======\nperson\n>>>>>>> "+tip+"\nthree\n")
			w.must(os.Remove(filepath.Join(w.task.Tree, "old.txt")))
		},
	} {
		for _, settled := range []bool{false, true} { // the agent's round begins before the merge is made again
			t.Run(fmt.Sprint(name, ", settled ", settled), func(t *testing.T) {
				t.Parallel()
				w := copyOf(t, "half", func(w *world) {
					firstCommit(w)
					w.put(w.repo, "old.txt", "old\n")
					w.git(w.repo, "add", "old.txt")
					w.git(w.repo, "commit", "--quiet", "-m", "old")
					w.task = w.give("T1", "")
					w.put(w.task.Tree, "loose.txt", "loose\n")
					w.put(w.repo, "new.txt", "new\n")
					w.git(w.repo, "rm", "--quiet", "old.txt")
					w.git(w.repo, "add", "new.txt")
					w.both("a.txt", "one\nagent\nthree\n", "one\nperson\nthree\n")
					w.ask(&w.task)
				})
				tip := w.git(w.repo, "rev-parse", "main")
				w.must(w.task.keepBroughtIn(broughtIn{Of: tip, Into: w.task.Asked.Commit, Half: true}))
				half(w, tip)
				if settled {
					w.must(w.task.Settle(t.Context()))
					if got := w.read("a.txt"); got != "one\nagent\nthree\n" || w.read("old.txt") != "old\n" {
						t.Errorf("the file has %q", got)
					}
				}
				_, err := lands(t.Context(), w.task, os.Stderr)
				if words, err := w.sendBackAfter(err); err != nil || !strings.Contains(words, "in these files: a.txt. Resolve") {
					t.Fatalf("sent back: %q, %v", words, err)
				}
				if got := w.read("a.txt"); got != "one\n<<<<<<< HEAD\nagent\n=======\nperson\n>>>>>>> "+tip+"\nthree\n" ||
					w.read("new.txt") != "new\n" || w.read("loose.txt") != "loose\n" {
					t.Errorf("the file has %q", got)
				}
				if got := w.git(w.task.Tree, "status", "--porcelain"); got != "UU a.txt\nA  loose.txt\nA  new.txt\nD  old.txt" {
					t.Errorf("status: %q", got)
				}
				w.put(w.task.Tree, "a.txt", "both\n")
				if _, err := w.land(&w.task); err != nil || w.onBase("a.txt") != "both" {
					t.Errorf("landed: %v", err)
				}
			})
		}
	}
}

// A folder that is made again while a merge is not finished is in the same merge.
func TestRestoreMerge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.both("a.txt", "one\nagent\nthree\n", "one\nperson\nthree\n")
	w.must(func() error { _, err := w.sendBack(); return err }())
	if _, err := w.task.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.must(os.RemoveAll(w.task.Tree))
	if _, err := w.task.Restore(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if got := w.git(w.task.Tree, "rev-parse", "MERGE_HEAD"); got != w.git(w.repo, "rev-parse", "main") {
		t.Errorf("merged: %q", got)
	}
	if err := w.task.Check(t.Context(), os.Stderr); !errors.As(err, new(*CheckFailed)) {
		t.Errorf("checked: %v", err)
	}
	w.put(w.task.Tree, "a.txt", "both\n")
	if _, err := w.land(&w.task); err != nil || w.onBase("a.txt") != "both" {
		t.Errorf("landed: %v", err)
	}
}

// What an agent has made of the clone's git directory runs nothing and is written nowhere else.
func TestBaseIntoHostileClone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set     func(w *world, out string)
		refused bool
	}{
		"a plain clone": {func(*world, string) {}, false},
		"programs": {func(w *world, out string) {
			program := filepath.Join(w.task.Tree, ".git", "run")
			w.put(w.task.Tree, ".git/run", "#!/bin/sh\necho >> "+out+"/ran\n")
			w.must(os.Chmod(program, 0o700))
			for _, key := range []string{
				"core.fsmonitor", "core.hooksPath", "merge.x.driver", "filter.x.clean", "filter.x.smudge", "diff.external",
				"core.sshCommand", "gpg.program",
				"core.alternateRefsCommand", "core.editor", "merge.tool", "remote.origin.uploadpack", "uploadpack.packObjectsHook",
			} {
				w.git(w.task.Tree, "config", key, program)
			}
			w.put(w.task.Tree, ".git/info/attributes", "* merge=x filter=x\n")
			for _, hook := range []string{"post-index-change", "pre-merge-commit", "post-checkout", "reference-transaction", "post-merge"} {
				w.must(errors.Join(os.MkdirAll(filepath.Join(w.task.Tree, ".git", "hooks"), 0o700),
					os.Symlink(program, filepath.Join(w.task.Tree, ".git", "hooks", hook))))
			}
		}, false},
		"objects elsewhere": {func(w *world, out string) {
			packs := filepath.Join(w.task.Tree, ".git", "objects", "pack")
			w.must(errors.Join(os.RemoveAll(packs), os.Symlink(out, packs)))
		}, true},
		"an index elsewhere": {func(w *world, out string) {
			w.must(errors.Join(os.Rename(filepath.Join(w.task.Tree, ".git", "index"), filepath.Join(out, "index")),
				os.Symlink(filepath.Join(out, "index"), filepath.Join(w.task.Tree, ".git", "index"))))
		}, false},
		"a head elsewhere": {func(w *world, out string) {
			w.must(os.Symlink(filepath.Join(out, "head"), filepath.Join(w.task.Tree, ".git", "MERGE_MSG")))
		}, false},
		"a rebase": {func(w *world, _ string) { w.put(w.task.Tree, ".git/rebase-merge/onto", "x\n") }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.both("a.txt", "one\nagent\nthree\n", "one\nperson\nthree\n")
			w.ask(&w.task)
			out := t.TempDir()
			c.set(w, out)
			before := names(t, out)
			_, err := lands(t.Context(), w.task, os.Stderr)
			if _, err = w.sendBackAfter(err); errors.As(err, new(*Blocked)) != c.refused || (err != nil) != c.refused {
				t.Errorf("sent back: %v", err)
			}
			if after := names(t, out); after != before {
				t.Errorf("outside there is %s", after)
			}
			if c.refused &&
				(w.read("a.txt") != "one\nagent\nthree\n" || w.git(w.repo, "diff", "--stat", w.task.Asked.Commit, w.task.Ref()) != "") {
				t.Errorf("refused, and the file has %q", w.read("a.txt"))
			}
			if name == "programs" {
				if _, err := (&play{T: t}).try(w.task.Tree, "status"); err != nil || names(t, out) == before {
					t.Errorf("git in the folder runs none of them either: %v", err)
				}
			}
		})
	}
}

func names(t *testing.T, dir string) (all string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		text, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		all += e.Name() + "=" + string(text) + " "
	}
	return all
}

// What a pull request conflicts with is merged into the folder: the newest base of the forge, and commits of others on the branch.
// Conflicts below .claude wait for the person.
func TestForgeIsMerged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		branch, file string
		held         bool
	}{
		"the base": {"main", "b.txt", false}, "the base, held": {"main", ".claude/x", true},
		"the branch": {"fairlead/T1", "b.txt", false}, "the branch, held": {"fairlead/T1", ".claude/x", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHub(t)
			w := h.w
			w.put(w.task.Tree, c.file, "first\n")
			w.show()
			h.look(0, hour)
			other := filepath.Join(filepath.Dir(w.repo), "other")
			w.git(w.repo, "clone", "--quiet", "--branch", c.branch, h.bare, other)
			w.put(other, c.file, "theirs\n")
			w.git(other, "add", c.file)
			w.git(other, "-c", "user.name=x", "-c", "user.email=x", "commit", "--quiet", "-m", "theirs")
			w.git(other, "push", "--quiet", "origin", "HEAD")
			w.put(w.task.Tree, c.file, "second\n")
			if c.branch != "main" {
				w.show()
			}
			h.request.Conflict = c.branch == "main"
			for range 2 {
				l, err := PullRequest(t.Context(), w.task, io.Discard, h, 1, hour)
				if c.held {
					if !errors.As(err, new(*Blocked)) || !strings.Contains(err.Error(), c.file+", and no agent may write below .claude") {
						t.Fatalf("%+v, %v", l, err)
					}
					continue
				}
				text, _ := os.ReadFile(filepath.Join(w.task.Run, FeedbackName))
				if err != nil || l.Outcome != Returns ||
					!strings.Contains(string(text),
						"Branch "+c.branch+" has been merged into your folder, and the conflicts are left in these files: b.txt. Resolve") {
					t.Fatalf("%+v, %v: %s", l, err, text)
				}
			}
			w.put(w.task.Tree, c.file, "both\n")
			if c.held {
				l := h.look(1, hour)
				if l.Outcome != Returns {
					t.Fatalf("after the person: %+v", l)
				}
			}
			h.request.Conflict = false
			w.show()
			if l := h.look(2, hour); l.Outcome != Waits {
				t.Fatalf("%+v", l)
			}
			w.git(h.bare, "merge-base", "--is-ancestor", c.branch, w.task.Branch)
			if got := w.git(h.bare, "show", w.task.Branch+":"+c.file); got != "both" {
				t.Errorf("pushed: %q", got)
			}
		})
	}
}
