package fairlead_test

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testFuncPattern  = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testNamePattern  = regexp.MustCompile("^`(?:([a-z0-9/_-]+)\\.)?(Test\\w+)`$")
	scriptName       = regexp.MustCompile(`[a-z0-9_-]+\.txtar`)
	scriptPattern    = regexp.MustCompile("^`([a-z0-9_-]+\\.txtar)`$")
	freeSections     = []string{"Reporting a vulnerability", "How to read the tables"}
	notHeld          = "What is not held"
	scriptsOfTheTree = "cmd/fairlead/testdata/script/"
)

// TestSecurityNamesItsTests: SECURITY.md says what is not held first, and then, outside of its introduction, only rows of
// tables, each with the test that holds it. A sentence about security without a test is a hope.
func TestSecurityNamesItsTests(t *testing.T) {
	r := readTree(t)
	folders := map[string][]string{} // of a test
	for p, f := range r.goes {
		if f.test {
			for _, m := range testFuncPattern.FindAllStringSubmatch(r.text[p], -1) {
				folders[m[1]] = append(folders[m[1]], path.Dir(p))
			}
		}
	}
	threats := map[string]bool{}
	section, held, rows := "", false, 0
	eachLine(r.text["SECURITY.md"], func(n int, line string, _ bool) {
		if m := headingPattern.FindStringSubmatch(line); m != nil {
			if strings.HasPrefix(line, "## ") {
				section = m[1]
				held = held || section != notHeld && !slices.Contains(freeSections, section)
			}
			if section == notHeld && held {
				t.Errorf("SECURITY.md:%d: %s comes before what is held", n, notHeld)
			}
			return
		}
		if line == "" || slices.Contains(freeSections, section) || section == "" {
			return
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		switch {
		case !strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "|---"):
			t.Errorf("SECURITY.md:%d: a sentence outside of the tables; make it a row with its test", n)
		case strings.HasPrefix(line, "|---"), strings.HasPrefix(line, "| Threat |"), strings.HasPrefix(line, "| What |"):
		case section == notHeld && len(cells) != 3 || section != notHeld && len(cells) != 4:
			t.Errorf("SECURITY.md:%d: a row has %d cells; it needs threat, what holds it, systems and tests, or three for what is not held",
				n, len(cells))
		default:
			rows++
			threat := strings.TrimSpace(cells[0])
			if threats[threat] {
				t.Errorf("SECURITY.md:%d: the threat %q stands twice", n, threat)
			}
			threats[threat] = true
			tests := strings.TrimSpace(cells[len(cells)-1])
			if tests == "-" && section == notHeld {
				return
			}
			for _, name := range strings.Split(tests, ", ") {
				if why := r.noTest(name, folders); why != "" {
					t.Errorf("SECURITY.md:%d: %s %s", n, name, why)
				}
			}
		}
	})
	if rows < 40 {
		t.Errorf("SECURITY.md has only %d rows", rows)
	}
}

// TestPromisesHaveScripts: doc/testing.md names for each of the eight promises a script of `go test ./...`, and all scripts that it
// names are where it says.
func TestPromisesHaveScripts(t *testing.T) {
	r := readTree(t)
	_, list, _ := strings.Cut(r.text["doc/testing.md"], "\n| promise | ")
	list, _, _ = strings.Cut(list, "\n\n")
	promises := 0
	for line := range strings.Lines(list) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " |")
		if len(cells) != 3 || !strings.Contains(cells[1], ".txtar") {
			continue
		}
		promises++
		for i, folder := range []string{scriptsOfTheTree, scriptsOfTheTree + "long/"} {
			for _, name := range scriptName.FindAllString(cells[i+1], -1) {
				if !slices.Contains(r.paths, folder+name) {
					t.Errorf("doc/testing.md: %s: there is no %s", strings.TrimSpace(cells[0]), folder+name)
				}
			}
		}
	}
	if promises != 8 {
		t.Errorf("doc/testing.md has scripts for %d promises, and there are 8", promises)
	}
}

// noTest says why a name in SECURITY.md is not that of one test.
func (r *tree) noTest(name string, folders map[string][]string) string {
	if m := scriptPattern.FindStringSubmatch(name); m != nil {
		if !slices.Contains(r.paths, scriptsOfTheTree+m[1]) && !slices.Contains(r.paths, scriptsOfTheTree+"long/"+m[1]) {
			return "is no script in " + scriptsOfTheTree
		}
		return ""
	}
	m := testNamePattern.FindStringSubmatch(name)
	switch {
	case m == nil:
		return "is not the name of a test; write `TestName`, `folder.TestName` or `script.txtar`, separated by commas"
	case len(folders[m[2]]) == 0:
		return "does not exist; name a test that holds this row"
	case m[1] == "" && len(folders[m[2]]) > 1:
		return "is the name of several tests; write the folder before it: " + strings.Join(folders[m[2]], ", ")
	case m[1] != "" && !slices.ContainsFunc(folders[m[2]], func(folder string) bool { return folder == m[1] || path.Base(folder) == m[1] }):
		return "is not in that folder; it is in " + strings.Join(folders[m[2]], ", ")
	}
	return ""
}
