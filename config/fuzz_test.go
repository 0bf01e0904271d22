package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse checks that any bytes give a Config or faults with places, that Parse does not panic, and that no
// message holds the value of a variable.
func FuzzParse(f *testing.F) {
	f.Add([]byte(contract))
	f.Add(Starter(StarterConfig))
	f.Add([]byte("a: &a [*a, {<<: *a}]\n? [x]\n: !!binary x\n"))
	f.Add([]byte("version: 1\nagents: {a: {command: [sh], env: {K: ${SECRET}, L: $${, M: ${}}}}\n"))
	cases, err := filepath.Glob("testdata/faults/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range cases {
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(sections(string(b))[FileName]))
	}
	dir := folder(f, map[string]string{"a.yaml": ""})
	const secret = "do-not-show-me"
	f.Fuzz(func(t *testing.T, source []byte) {
		if strings.Contains(string(source), secret[:4]) {
			t.Skip()
		}
		cfg, err := Parse(FileName, dir, source, environment(map[string]string{"SECRET": secret, "A": secret}))
		if err == nil {
			if cfg.Version != 1 || cfg.Team.Size < 1 || cfg.Listen == "" {
				t.Fatalf("a Config without its defaults: %+v", cfg)
			}
			for _, a := range cfg.Agents {
				if a.Driver == "" || !filepath.IsAbs(a.Workspace) || a.FailuresMax < 1 || a.Backoff.First > a.Backoff.Max {
					t.Fatalf("an agent without its defaults: %+v", a)
				}
			}
			return
		}
		var faults *Faults
		if !errors.As(err, &faults) {
			t.Fatalf("%v is not a list of faults", err)
		}
		lines := strings.Count(string(source), "\n") + strings.Count(string(source), "\r") + 3
		for _, fault := range faults.List {
			if strings.Contains(fault.Error(), secret) {
				t.Fatalf("a secret is shown: %s", fault)
			}
			if strings.ContainsAny(fault.Error(), "\n\r\x00\x1b") {
				t.Fatalf("a fault that is more than a line: %q", fault.Error())
			}
			if fault.Text == "" || fault.Line < 0 || fault.Line > 3*lines {
				t.Fatalf("a fault without words or place: %+v", fault)
			}
		}
	})
}
