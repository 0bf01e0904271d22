package task

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// signing is a world whose person signs every commit with an SSH key, by settings that hold for all repositories.
func signing(t *testing.T, how string) (w *world, global string) {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip(err)
	}
	w = newWorld(t)
	w.task.How = how
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	global = filepath.Join(dir, "gitconfig")
	w.put(dir, "gitconfig", "[commit]\n\tgpgSign = true\n[gpg]\n\tformat = ssh\n[user]\n\tsigningKey = "+key+".pub\n")
	w.put(w.task.Tree, "b.txt", "b\n")
	w.git(w.task.Tree, "add", "b.txt")
	w.git(w.task.Tree, "commit", "--quiet", "-m", "the agent's first")
	w.put(w.task.Tree, "c.txt", "c\n")
	w.git(w.task.Tree, "add", "c.txt")
	w.git(w.task.Tree, "commit", "--quiet", "-m", "the agent's second", "--author=An Agent <agent@example.org>")
	w.ask(&w.task)
	w.save("other.txt")
	return w, global
}

// landWith lands the task in a process with settings of its own.
func (w *world) landWith(env ...string) outcome {
	w.Helper()
	return (&play{T: w.T}).child(&tasked{Task: w.task}, StepLand, env...)
}

// If the person signs commits, those that land are signed: with the person's key, and with their authors and messages.
func TestLandSigned(t *testing.T) {
	t.Parallel()
	for how, commits := range map[string]int{Squash: 1, Merge: 1, Rebase: 2} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w, global := signing(t, how)
			tip := w.git(w.repo, "rev-parse", "main")
			if o := w.landWith("FAIRLEAD_TASK_TEST_GLOBAL=" + global); o.Kind != "" {
				t.Fatalf("%+v", o)
			}
			made := strings.Fields(w.git(w.repo, "rev-list", "--first-parent", tip+"..main"))
			for _, commit := range made {
				if text := w.git(w.repo, "cat-file", "commit", commit); !strings.Contains(text, "\ngpgsig -----BEGIN SSH SIGNATURE") {
					t.Errorf("not signed: %s", text)
				}
			}
			if len(made) != commits || w.onBase("c.txt") != "c" || w.onBase("other.txt") != "x" {
				t.Errorf("landed: %q", made)
			}
			if got := w.git(w.repo, "log", "-1", "--format=%an: %B", "main"); how == Rebase && got != "An Agent: the agent's second\n\nTask: T1" {
				t.Errorf("the last commit: %q", got)
			}
		})
	}
}

// What cannot be signed does not land, and it is said why.
func TestLandNotSigned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		local string // a setting of the repository's own
		says  string
	}{
		"no key":                      {"user.signingKey=/nowhere", "could not be signed"},
		"a program of the repository": {"gpg.ssh.program=/bin/true", "gpg.ssh.program is set in the repository's own configuration"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, global := signing(t, Squash)
			key, value, _ := strings.Cut(c.local, "=")
			w.git(w.repo, "config", key, value)
			tip := w.git(w.repo, "rev-parse", "main")
			if o := w.landWith("FAIRLEAD_TASK_TEST_GLOBAL=" + global); o.Kind != "blocked" || !strings.Contains(o.Err, c.says) {
				t.Errorf("%+v", o)
			}
			w.git(w.repo, "config", "commit.gpgSign", "false")
			if got := w.git(w.repo, "rev-parse", "main"); got != tip {
				t.Errorf("landed: %s", got)
			}
			if o := w.landWith("FAIRLEAD_TASK_TEST_GLOBAL=" + global); o.Kind != "" {
				t.Errorf("without signatures: %+v", o)
			}
		})
	}
}
