package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli/setup"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/policy"
)

// agentPages are the pages about agent programs.
func agentPages(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "doc", "agents", "*.md"))
	if err != nil || len(paths) < 7 {
		t.Fatalf("%d pages: %v", len(paths), err)
	}
	pages := map[string]string{}
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.Base(p)] = string(text)
	}
	return pages
}

// Every fairlead.yaml that a page shows is one, without a fault and without a note.
func TestAgentPagesAreRead(t *testing.T) {
	t.Parallel()
	fragment := regexp.MustCompile("(?s)```yaml\n(.*?)```")
	for name, page := range agentPages(t) {
		found := fragment.FindAllStringSubmatch(page, -1)
		if len(found) == 0 {
			t.Errorf("%s shows no fairlead.yaml", name)
		}
		for _, m := range found {
			text := m[1]
			if !strings.HasPrefix(text, "version:") {
				text = "version: 1\n" + text
			}
			cfg, err := config.Parse(config.FileName, t.TempDir(), []byte(text), func(string) (string, bool) { return "a value", true })
			if err != nil {
				t.Errorf("%s: %v\n%s", name, err, text)
			} else if len(cfg.Notes) > 0 || len(cfg.Agents) == 0 {
				t.Errorf("%s: %d agents, notes %v\n%s", name, len(cfg.Agents), cfg.Notes, text)
			}
		}
	}
}

// Every pattern that the table of patterns shows is one.
func TestAgentPagesPatterns(t *testing.T) {
	t.Parallel()
	_, table, ok := strings.Cut(agentPages(t)["permissions.md"], "| pattern | covers |\n|---|---|\n")
	if !ok {
		t.Fatal("permissions.md has no table of patterns")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	count := 0
	for line := range strings.Lines(table) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cell, -1) {
			count++
			if _, err := policy.ParsePattern(m[1]); err != nil {
				t.Errorf("permissions.md: %v", err)
			}
		}
	}
	if count < 12 {
		t.Errorf("only %d patterns are in the table", count)
	}
}

// The pages show each program by the command that init writes.
func TestAgentPagesAgreeWithInit(t *testing.T) {
	t.Parallel()
	pages := agentPages(t)
	for _, p := range setup.AgentPrograms {
		command := "[" + strings.Join(p.Command, ", ") + "]"
		if p.Driver != "" && !strings.Contains(pages[p.Page], command) {
			t.Errorf("%s does not show %s", p.Page, command)
		}
		if ran := strings.Contains(pages[p.Page], "Run here"); p.Ran && !ran ||
			!p.Ran && ran && slices.Contains([]string{"claude-code.md", "gemini.md"}, p.Page) {
			t.Errorf("%s: init says that it was run here: %v, its page: %v", p.Page, p.Ran, ran)
		}
	}
}
