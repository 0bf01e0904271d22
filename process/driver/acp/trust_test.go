package acp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/driver"
)

// Gemini CLI connects to the team's tools only in a folder that it trusts, and the session says where
// it does not.
func TestGeminiTrusts(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	sub := filepath.Join(dir, "sub")
	if err := os.MkdirAll(filepath.Join(home, ".gemini"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		settings, folders string
		argv, env         []string
		want              bool
	}{
		"nothing":          {},
		"variable":         {env: []string{"GEMINI_CLI_TRUST_WORKSPACE=true"}, want: true},
		"variable, last":   {env: []string{"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_CLI_TRUST_WORKSPACE=false"}},
		"restricted":       {env: []string{"GEMINI_CLI_TRUST_WORKSPACE=true", "GEMINI_RESTRICTED_MODE=true"}},
		"flag":             {argv: []string{"--skip-trust"}, want: true},
		"off":              {settings: `{"security":{"folderTrust":{"enabled":false}}}`, want: true},
		"on":               {settings: `{"security":{"folderTrust":{"enabled":true}}}`},
		"folder":           {folders: `{"` + sub + `":"TRUST_FOLDER"}`, want: true},
		"above":            {folders: `{"` + dir + `":"TRUST_FOLDER"}`, want: true},
		"parent":           {folders: `{"` + filepath.Join(dir, "other") + `":"TRUST_PARENT"}`, want: true},
		"not below":        {folders: `{"` + dir + `":"TRUST_FOLDER","` + sub + `":"DO_NOT_TRUST"}`},
		"another":          {folders: `{"` + home + `":"TRUST_FOLDER"}`},
		"folders, invalid": {folders: `[`},
	} {
		for file, text := range map[string]string{"settings.json": c.settings, "trustedFolders.json": c.folders} {
			if err := os.WriteFile(filepath.Join(home, ".gemini", file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := geminiTrusts(sub, c.argv, append([]string{"HOME=" + home}, c.env...)); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}

	if err := os.WriteFile(filepath.Join(home, ".gemini", "settings.json"), nil, 0o600); err != nil { // whichever case was the last one
		t.Fatal(err)
	}
	s := newScene(t, driver.Work, "go")
	s.part.Command, s.part.MCP = []string{"/bin/gemini", "--acp"},
		driver.MCP{URL: "http://127.0.0.1:1/mcp", Token: "secret", Stdio: []string{"/bin/fairlead", "mcp"}}
	s.env = []string{"HOME=" + home}
	s.play(func(f *fake) {
		f.greeted()
		f.result(f.expect("session/prompt"), `{"stopReason":"end_turn"}`)
		f.next()
	})
	if got := s.of(driver.Faulted); len(got) != 1 || !strings.Contains(got[0].Text, "does not trust the folder /work/repo") {
		t.Errorf("faults: %+v", got)
	}
}
