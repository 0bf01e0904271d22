package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// block is a piece of a tutorial: commands, and the lines that the page shows as their output.
type block struct {
	commands string
	shown    []string
}

// blocks reads the `sh` blocks of a page, each with the `text` block that follows it, if any.
func blocks(page string) []block {
	var all []block
	for _, m := range regexp.MustCompile("(?ms)^```(sh|text)\n(.*?)^```$").FindAllStringSubmatch(page, -1) {
		if m[1] == "sh" {
			all = append(all, block{commands: m[2]})
			continue
		}
		last := &all[len(all)-1]
		last.shown = append(last.shown, strings.Split(strings.TrimSpace(m[2]), "\n")...)
	}
	return all
}

// missing is the first line of a block's expected output that does not occur in its output, behind
// the lines before it. `…` stands for any text within a line.
func (b block) missing(output string) string {
	for _, line := range b.shown {
		var parts []string
		for _, part := range strings.Split(line, "…") {
			parts = append(parts, regexp.QuoteMeta(strings.TrimSpace(part)))
		}
		at := regexp.MustCompile(strings.Join(parts, ".*")).FindStringIndex(output)
		if at == nil {
			return line
		}
		output = output[at[1]:]
	}
	return ""
}

// readOnly says that a block only looks: it may be executed again until it shows what is expected,
// as a person would look again, because the daemon and the agents work meanwhile.
func (b block) readOnly() bool {
	for line := range strings.Lines(b.commands) {
		if !regexp.MustCompile(`^(fairlead (ps|why|events)\b|cat |ls |git log)[^>|]*$`).MatchString(line) {
			return false
		}
	}
	return true
}

// step runs commands of a page in a folder. It returns their output and the folder in which they end.
func (p guidePlace) step(t *testing.T, folder, commands string) (output, end string, err error) {
	t.Helper()
	note := filepath.Join(p.dir, ".folder")
	output, err = p.run(t, folder, fmt.Sprintf("set -eu\n%s\npwd > '%s'\n", onAnyPort(commands), note))
	if err != nil {
		return output, folder, err
	}
	text, err := os.ReadFile(note)
	return output, strings.TrimSpace(string(text)), err
}

// A block's expected output is searched in order, and `…` does not cross lines.
func TestTourBlocks(t *testing.T) {
	got := blocks("```\nshown only\n```\n```sh\nfairlead ps\n```\nprose\n```text\ncoder …IDLE\nready http://…\n```\n```sh\nkill 1\n```\n")
	if len(got) != 2 || got[0].commands != "fairlead ps\n" || len(got[0].shown) != 2 || !got[0].readOnly() || got[1].readOnly() {
		t.Fatalf("%+v", got)
	}
	for output, want := range map[string]string{
		"coder  now  IDLE\nready http://127.0.0.1": "",
		"ready http://127.0.0.1\ncoder IDLE":       "ready http://…",
		"coder\nIDLE":                              "coder …IDLE",
	} {
		if line := got[0].missing(output); line != want {
			t.Errorf("%q misses %q, want %q", output, line, want)
		}
	}
}
