package main

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// seesImages speaks Claude Code's protocol: it keeps what it is told in a file, and changes another one.
const seesImages = `#!/bin/sh
[ "$1" = --version ] && { echo "1.0.0 (Claude Code)"; exit; }
while read -r line; do
	case "$line" in
	*'"subtype":"initialize"'*) echo '{"type":"control_response","response":{"subtype":"success","request_id":"fairlead-greeting","response":{}}}' ;;
	*'"type":"user"'*)
		printf '%s\n' "$line" >> told
		echo x >> b.txt
		echo '{"type":"system","subtype":"init","session_id":"c1","model":"m1","permissionMode":"default","claude_code_version":"1.0.0"}'
		echo '{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":0.5,"usage":{"input_tokens":7,"output_tokens":3}}' ;;
	esac
done
`

// picture is a PNG of so many pixels.
func picture(t *testing.T, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewRGBA(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An image of a task reaches a program that takes images, once for a conversation, and its path is in the text. What is
// no image, or too large, is refused, and no task is left.
func TestTaskImages(t *testing.T) {
	t.Parallel()
	dir, _ := taskRepo(t, "*\n!b.txt\n!.gitignore\n")
	files := t.TempDir()
	good := picture(t, 3, 2)
	for name, data := range map[string][]byte{
		"a.png": good, "notes.txt": []byte("by hand"), "zip.png": []byte("PK\x03\x04\xff"),
		"wide.png":  picture(t, driver.ImageSideMax+1, 1),
		"page.svg":  []byte("<svg xmlns='http://www.w3.org/2000/svg'></svg>"),
		"large.png": append(bytes.Clone(good), make([]byte, driver.ImageBytesMax)...),
	} {
		if err := os.WriteFile(filepath.Join(files, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fake := filepath.Join(files, "claude")
	if err := os.WriteFile(fake, []byte(seesImages), 0o700); err != nil {
		t.Fatal(err)
	}
	s := newRigIn(t, dir,
		map[string]string{"fairlead.yaml": "version: 1\nagents:\n  coder: {driver: claude, command: [" + fake + "], workspace: .}\n"})
	for name, want := range map[string]string{
		"zip.png": "neither a text file nor a PNG", "wide.png": "8001 by 1 pixels", "large.png": "3 MiB", "none.png": "no such file",
		".": "not a file",
	} {
		if out, code := s.fairlead("task", "look", "--attach", filepath.Join(files, name)); code != cli.ExitUsage ||
			!strings.Contains(out, want) {
			t.Errorf("%s: exit code %d: %s", name, code, out)
		}
	}
	many := []string{"task", "look"}
	for range 11 {
		many = append(many, "--attach", filepath.Join(files, "notes.txt"))
	}
	if out, code := s.fairlead(many...); code == cli.ExitDone || cli.Exists(filepath.Join(dir, ".agents", "runs", "T1")) {
		t.Errorf("eleven files: exit code %d: %s", code, out)
	}

	if out, code := s.fairlead("task", "look at this", "--attach", filepath.Join(files, "a.png"), "--attach",
		filepath.Join(files, "notes.txt"), "--attach", filepath.Join(files, "page.svg")); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, out)
	}
	told := func() []string {
		text, _ := os.ReadFile(filepath.Join(dir, ".agents", "worktrees", "T1", "told"))
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	waits := func(times int) {
		t.Helper()
		wait.Until(t, "the task waits for a person", func() bool {
			out, _ := s.fairlead("tasks")
			return strings.Contains(out, "needs you") && len(told()) == times && told()[times-1] != ""
		})
	}
	waits(1)
	first := told()[0]
	if !strings.Contains(first, `{"data":"`+base64.StdEncoding.EncodeToString(good)+`","media_type":"image/png","type":"base64"}`) ||
		strings.Count(first, `"type":"image"`) != 1 {
		t.Errorf("the program was told %.2000s", first)
	}
	for _, name := range []string{"a.png", "notes.txt", "page.svg"} {
		if path := filepath.Join(dir, ".agents", "runs", "T1", "attachments", name); !strings.Contains(first, path) || !cli.Exists(path) {
			t.Errorf("the path %s is missing in %.2000s", path, first)
		}
	}
	if out, code := s.fairlead("request", "T1", "larger"); code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, out)
	}
	waits(2)
	if again := told()[1]; strings.Contains(again, `"type":"image"`) || !strings.Contains(again, "larger") {
		t.Errorf("a conversation that has the image was told %.2000s", again)
	}
}
