package script

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// TestFaults checks each testdata/faults/NAME.yaml; its expected faults are in NAME.txt.
func TestFaults(t *testing.T) {
	files, err := filepath.Glob("testdata/faults/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			_, err := Load(file)
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("no faults: %v", err)
			}
			golden.Check(t, strings.TrimSuffix(file, ".yaml")+".txt", faults.Error()+"\n")
		})
	}
}

// TestExample checks the example in the package's documentation.
func TestExample(t *testing.T) {
	example, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	shown := "//\t" + strings.ReplaceAll(strings.TrimSuffix(string(example), "\n"), "\n", "\n//\t") + "\n"
	if !strings.Contains(string(doc), shown) {
		t.Error("doc.go does not show testdata/example.yaml")
	}
	p, err := Parse("example.yaml", example)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Sessions) != 2 || p.Sessions[0].Name != "feature" || len(p.Cleanup) != 1 || len(p.Lead) != 3 {
		t.Errorf("%+v", p)
	}
	for name := range verbs {
		if !strings.Contains(string(doc), "//\t"+name+" ") {
			t.Errorf("doc.go does not describe the step %s", name)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{filepath.Join(dir, "none.yaml"), dir, os.DevNull} {
		if _, err := Load(path); err == nil {
			t.Errorf("%s was loaded", path)
		}
	}
}

// TestLoadReadsAFileOnce checks that a script is parsed again only if its file has changed.
func TestLoadReadsAFileOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.yaml")
	write := func(text string, at time.Time) *Program {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		p, err := Load(path)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	old := time.Now().Add(-time.Hour)
	first := write("steps: [{say: one}]", old)
	if again, err := Load(path); err != nil || again != first {
		t.Errorf("the same file was parsed again: %v", err)
	}
	if p := write("steps: [{say: two}]", old.Add(time.Minute)); p == first {
		t.Error("the changed file was not parsed")
	}
	now := write("steps: [{say: new}]", time.Now())
	if again, err := Load(path); err != nil || again == now {
		t.Errorf("a file that may still change with the same time was not parsed again: %v", err)
	}
}

func TestForms(t *testing.T) {
	p, err := Parse("x.yaml", []byte(`
steps:
  - hang
  - {hang: why}
  - {hang: }
  - crash
  - expect_prompt:
  - {usage: {cost_usd: 1}}
  - &again {say: again}
  - *again
`))
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Sessions[0].Steps[7]; s.Text != "again" {
		t.Errorf("alias: %+v", s)
	}
	p, err = Parse("x.yaml", []byte("sessions:\n- - say: one\n  - say: two\n- {name: named, steps: [{say: three}]}"))
	if err != nil || len(p.Sessions) != 2 || len(p.Sessions[0].Steps) != 2 || p.Sessions[1].Name != "named" {
		t.Errorf("sessions: %+v %v", p, err)
	}
}

// TestAliasExpansion checks that a small file that expands to a large one costs neither memory nor time.
func TestAliasExpansion(t *testing.T) {
	many := strings.Repeat("x,", 30_000)
	for name, source := range map[string]string{
		"binary":  "steps:\n- {emit: &a !!binary \"" + strings.Repeat("AAAA", 30_000) + "\"}\n" + strings.Repeat("- {emit: *a}\n", 20_000),
		"options": "steps:\n- {ask: a, options: &a [" + many + "]}\n" + strings.Repeat("- {ask: a, options: *a}\n", 2_000),
		"steps":   "sessions:\n- &a [" + strings.Repeat("{say: x},", 1_000) + "]\n" + strings.Repeat("- *a\n", 1_000),
		"nesting": "steps: " + strings.Repeat("[", 500_000),
		"faults":  "steps: [" + many + "]",
		"length":  "steps: [{say: " + strings.Repeat("x", scriptBytesMax) + "}]",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("bomb.yaml", []byte(source))
			if err == nil {
				t.Error("no fault")
			} else if len(err.Error()) > 64<<10 {
				t.Errorf("%d bytes of faults", len(err.Error()))
			}
		})
	}
}

// FuzzParse checks that any file yields either faults with positions or a program.
func FuzzParse(f *testing.F) {
	files, _ := filepath.Glob("testdata/*/*.yaml")
	for _, file := range append(files, "testdata/example.yaml") {
		if b, err := os.ReadFile(file); err == nil {
			f.Add(b)
		}
	}
	f.Add([]byte("sessions: &a [*a]"))
	f.Add([]byte("a: &a [x,x]\nb: &b [*a,*a]\nsteps: [*b,*b]"))
	f.Fuzz(func(t *testing.T, source []byte) {
		p, err := Parse("fuzz.yaml", source)
		if err == nil {
			if len(p.Sessions) == 0 || len(p.Sessions[0].Steps) == 0 {
				t.Fatal("a program without steps")
			}
			return
		}
		var faults Faults
		if !errors.As(err, &faults) || len(faults) == 0 || len(faults) > faultsMax+1 {
			t.Fatalf("not faults: %v", err)
		}
	})
}
