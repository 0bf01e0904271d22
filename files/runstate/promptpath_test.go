package runstate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// put writes a file in a folder.
func put(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPromptsAreFoundInOrder(t *testing.T) {
	top := t.TempDir()
	repo, beside := filepath.Join(top, "repo"), filepath.Join(top, "repo", "flows")
	places := PromptPlaces{Repo: repo, Beside: beside}
	absolute := put(t, top, "elsewhere/plan.md", "outside, but named absolutely")
	third := put(t, repo, "plan.md", "in the repository")
	find := func(written, want string) {
		t.Helper()
		if got, err := places.Find(written); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", written, got, err, want)
		}
	}
	find("plan.md", third)
	second := put(t, repo, "flows/plan.md", "beside")
	find("plan.md", second)
	first := put(t, repo, ".agents/prompts/plan.md", "for the agents")
	find("plan.md", first)
	find(absolute, absolute)
	find("../other.md", put(t, repo, "other.md", "")) // relative to the workflow, and inside the repository
	deep := put(t, repo, ".agents/prompts/review/code.md", "with a folder")
	find("review/code.md", deep)
	find("./review/code.md", deep)
	find("prompts/plan.md", first) // the repository's own prompt overrides the one that the workflow names
}

// TestPromptInTheRunsFolder has a run that began on another machine, where the repository is in another folder.
func TestPromptInTheRunsFolder(t *testing.T) {
	top := t.TempDir()
	here := put(t, top, "repo/.agents/runs/T1/task.md", "")
	there := put(t, top, "other/.agents/runs/T1/task.md", "")
	places := PromptPlaces{Repo: filepath.Join(top, "repo"), Beside: filepath.Dir(here)}
	for written, want := range map[string]string{
		here: here, there: here,
		put(t, top, "other/.agents/runs/T2/task.md", ""): filepath.Join(top, "other/.agents/runs/T2/task.md"),
	} {
		if got, err := places.Find(written); err != nil || got != want {
			t.Errorf("%s: got %s, %v; want %s", written, got, err, want)
		}
	}
}

func TestPromptsOutside(t *testing.T) {
	top := t.TempDir()
	repo := filepath.Join(top, "repo")
	secret := put(t, top, "secret.md", "not for you")
	put(t, repo, "flows/x.yaml", "")
	places := PromptPlaces{Repo: repo, Beside: filepath.Join(repo, "flows")}
	link := func(to, at string) {
		t.Helper()
		path := filepath.Join(repo, at)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, path); err != nil {
			t.Fatal(err)
		}
	}
	link(secret, ".agents/prompts/link.md")
	link(top, "up")
	link("link2.md", "link2.md")
	put(t, repo, "folder/x", "")
	if err := syscall.Mkfifo(filepath.Join(repo, "pipe.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := put(t, repo, "large.md", "")
	if err := os.Truncate(large, promptBytesMax+1); err != nil {
		t.Fatal(err)
	}
	for written, want := range map[string]string{
		"../../secret.md":                "outside of the repository",
		"link.md":                        "link.md is outside of the repository; put the file into it, or write the path absolutely",
		"up/secret.md":                   "outside of the repository",
		"link2.md":                       "cannot be looked at",
		"folder":                         "is no plain file",
		"pipe.md":                        "is no plain file",
		"large.md":                       "has 4194305 bytes, 4194304 at most",
		"absent.md":                      "there is no file absent.md; put it at .agents/prompts/absent.md, or at flows/absent.md, or at absent.md",
		"../../absent.md":                "would be outside of the repository",
		filepath.Join(top, "absent.md"):  "file does not exist",
		"a\x00b":                         "a zero byte",
		"":                               "no prompt is named",
		"folder/x/y.md":                  "there is no file",
		filepath.Join(repo, "folder"):    "is no plain file",
		strings.Repeat("x", 300) + ".md": "cannot be looked at",
	} {
		_, err := places.Find(written)
		var fault *PromptFault
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %s", written, err, want)
		}
	}
}
