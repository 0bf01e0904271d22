package runstate

import (
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/workflow"
)

// aCommand is a step of a running workflow.
func aCommand() StepCommand {
	return StepCommand{
		RunID: "f8c1a491", StepID: "coding", Agent: "coder", Model: "large", Repo: "/repo", Prompt: "/repo/prompts/code.md",
		Report: "/run/reports/f8c1a491__coding.json", ManualInput: "/run/manual_inputs/f8c1a491__coding.json",
		ArtifactsDir: "/run/artifacts", Attempt: 2,
	}
}

func TestWrapperArguments(t *testing.T) {
	c := aCommand()
	c.Wrapper, c.WrapperArgs = "/bin/wrap.py", []string{"--profile", "prod"}
	want := strings.Split("python3|/bin/wrap.py|--run-id|f8c1a491|--step-id|coding|--agent|coder|--prompt|/repo/prompts/code.md|--repo|/repo|--report|/run/reports/f8c1a491__coding.json|--profile|prod", "|")
	if got, err := c.Argv(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
	c.Wrapper = "/bin/wrap"
	if got, err := c.Argv(); err != nil || got[0] != "/bin/wrap" || got[1] != "--run-id" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := (StepCommand{StepID: "a"}).Argv(); err == nil || !strings.Contains(err.Error(), "step a: nothing plays it") {
		t.Errorf("got %v", err)
	}
}

func TestStepEnvironment(t *testing.T) {
	c := aCommand()
	c.Env = []string{"A=1", "STEP_ID=mine", "A=2=3", "bad", "=x"}
	c.Deps = []StepDep{{"plan.it-all", []string{"PLAN.md", "../x/y", "/abs/z.md"}}, {"empty", nil}}
	c.Loop = &StepLoop{ItemVar: "file", Item: `{"a": "b"}`, Index: 3}
	want := []string{
		"A=2=3", "STEP_ID=coding", "RUN_ID=f8c1a491", "AGENT_ID=coder", "REPO_DIR=/repo", "PROMPT_PATH=/repo/prompts/code.md",
		"REPORT_PATH=/run/reports/f8c1a491__coding.json", "MANUAL_RESULT_PATH=/run/manual_inputs/f8c1a491__coding.json", "STEP_ATTEMPT=2",
		"ARTIFACTS_DIR=/run/artifacts", "STEP_MODEL=large", `LOOP_FILE={"a":"b"}`, `LOOP_FILE_JSON={"a":"b"}`, "LOOP_INDEX=3",
		"DEP_PLAN_IT_ALL_ARTIFACT_0=/repo/PLAN.md", "DEP_PLAN_IT_ALL_ARTIFACT_1=/x/y", "DEP_PLAN_IT_ALL_ARTIFACT_2=/abs/z.md",
		"DEP_PLAN_IT_ALL_ARTIFACTS=/repo/PLAN.md,/x/y,/abs/z.md",
	}
	if got, files, err := c.Environ(); !reflect.DeepEqual(got, want) || files != nil || err != nil {
		t.Errorf("got\n%s\nwant\n%s\n%v, %v", strings.Join(got, "\n"), strings.Join(want, "\n"), files, err)
	}
	c = aCommand()
	c.Model, c.ManualInput, c.Loop = "", "", &StepLoop{Item: `"text with \"quotes\""`}
	got, _, err := c.Environ()
	if err != nil || !slices.Contains(got, "MANUAL_RESULT_PATH=") || !slices.Contains(got, `LOOP_ITEM=text with "quotes"`) ||
		!slices.Contains(got, `LOOP_ITEM_JSON="text with \"quotes\""`) ||
		slices.ContainsFunc(got, func(s string) bool { return strings.HasPrefix(s, "STEP_MODEL") }) {
		t.Errorf("got %q", got)
	}
}

// A loop value or a list of artifacts of more than 100 KiB is in a file. With what is left a process can be started; otherwise the
// error names the variable.
func TestStepEnvironmentAtItsLimits(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	paths := func(n, size int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("/%0*d", size-1, i))
		}
		return list
	}
	for _, c := range []struct {
		name string
		set  func(c *StepCommand)
		want string // the variables with a file, or else the error
	}{
		{"nothing", func(*StepCommand) {}, ""},
		{"an item of 100 KiB", func(c *StepCommand) { c.Loop = &StepLoop{Item: strings.Repeat("1", 100<<10)} }, ""},
		{"a larger item", func(c *StepCommand) { c.Loop = &StepLoop{Item: `"` + x(100<<10+1) + `"`} }, "LOOP_ITEM LOOP_ITEM_JSON"},
		{"an item that is larger as JSON", func(c *StepCommand) { c.Loop = &StepLoop{Item: `"` + x(100<<10) + `"`} }, "LOOP_ITEM_JSON"},
		{"an item with a zero byte", func(c *StepCommand) { c.Loop = &StepLoop{Item: `"a\u0000b"`} }, "LOOP_ITEM"},
		{
			"the largest item of a run", func(c *StepCommand) { c.Loop = &StepLoop{Item: strings.Repeat("1", 512<<10)} },
			"LOOP_ITEM LOOP_ITEM_JSON",
		},
		{"artifacts", func(c *StepCommand) { c.Deps = []StepDep{{"a", paths(100, 1000)}} }, ""},
		{"more artifacts", func(c *StepCommand) { c.Deps = []StepDep{{"a", paths(105, 1000)}, {"b", paths(1, 10)}} }, "DEP_A_ARTIFACTS"},
		{"a path like no other", func(c *StepCommand) { c.Deps = []StepDep{{"a", paths(1, 200_000)}} }, "DEP_A_ARTIFACT_0 DEP_A_ARTIFACTS"},
		{
			"too many artifacts", func(c *StepCommand) { c.Deps = []StepDep{{"a", paths(1000, 1000)}, {"b", paths(1000, 1000)}} },
			"step coding: its variables have 1",
		},
		{"a variable", func(c *StepCommand) { c.Env = []string{"A=" + x(envOneMax-3)} }, ""},
		{
			"a large variable", func(c *StepCommand) { c.Env = []string{"A=" + x(envOneMax-2)} },
			"step coding: the variable A has 131070 bytes, and a process takes 128 KiB",
		},
		{"a large variable that is given again", func(c *StepCommand) { c.Env = []string{"A=" + x(envOneMax), "A=1"} }, ""},
		{"a zero byte", func(c *StepCommand) { c.Env = []string{"A=a\x00b"} }, "step coding: the variable A has a zero byte"},
		{"many variables", func(c *StepCommand) {
			for i := range 20 {
				c.Env = append(c.Env, fmt.Sprintf("A%d=%s", i, x(100_000)))
			}
		}, "step coding: its variables have 195"},
	} {
		step := aCommand()
		step.Repo, step.ValuesDir = "/", "/run/values"
		c.set(&step)
		got, files, err := step.Environ()
		if err != nil {
			if c.want == "" || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		var names []string
		for _, f := range files {
			name := strings.TrimPrefix(f.Path, "/run/values/coding__")
			names = append(names, name)
			if !slices.Contains(got, name+"=") || !slices.Contains(got, name+"_FILE="+f.Path) {
				t.Errorf("%s: %s is not empty, or its file is not named", c.name, name)
			}
		}
		if strings.Join(names, " ") != c.want {
			t.Errorf("%s: files %q, want %s", c.name, names, c.want)
		}
		run := exec.CommandContext(t.Context(), "true")
		run.Env = got
		if err := run.Run(); err != nil {
			t.Errorf("%s: a process does not start with it: %v", c.name, err)
		}
	}
}

func TestCommandTemplates(t *testing.T) {
	for _, c := range []struct {
		template string
		want     []string
	}{
		{
			"codex exec --agent {agent} --prompt {prompt}",
			[]string{"codex", "exec", "--agent", "coder", "--prompt", "/repo/prompts/code.md"},
		},
		{`run "{repo}/a b" 'it is {attempt}' x\ y`, []string{"run", "/repo/a b", "it is 2", "x y"}},
		{"echo {{{run_id}}} --r={report}", []string{"echo", "{f8c1a491}", "--r=/run/reports/f8c1a491__coding.json"}},
		{`echo "a \"b\" \\ \n" '\'`, []string{"echo", `a "b" \ \n`, `\`}},
		{
			"sh -c 'cat {prompt} | tee log > {report}'",
			[]string{"sh", "-c", "cat /repo/prompts/code.md | tee log > /run/reports/f8c1a491__coding.json"},
		},
		{`echo '|' ";"`, []string{"echo", "|", ";"}},
		// No shell reads a template: what one would expand, run or leave out is text, as with Python's shlex.
		{
			"get http://x/?a=1&b=2 $HOME `x` * ~/y it;s (z) --re=^a|b$",
			[]string{"get", "http://x/?a=1&b=2", "$HOME", "`x`", "*", "~/y", "it;s", "(z)", "--re=^a|b$"},
		},
		{`echo a#b #c "\$d" {{e,f}}`, []string{"echo", "a#b", "#c", `\$d`, "{e,f}"}},
	} {
		step := aCommand()
		step.Template = c.template
		if got, err := step.Argv(); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %q, %v", c.template, got, err)
		}
	}
	step := aCommand()
	step.Template, step.ManualInput, step.WrapperArgs = "run {manual_input} '{manual_input}' x", "", []string{"--more"}
	if got, err := step.Argv(); err != nil || !reflect.DeepEqual(got, []string{"run", "", "x", "--more"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

// A value is one word whatever it holds; where a shell would interpret it, it is refused.
func TestValuesInTemplates(t *testing.T) {
	step := aCommand()
	step.Prompt, step.Template = "/my repo/$(touch x) '\"; {agent}", "run {prompt} --p={prompt}"
	if got, err := step.Argv(); err != nil || !reflect.DeepEqual(got, []string{"run", step.Prompt, "--p=" + step.Prompt}) {
		t.Errorf("got %q, %v", got, err)
	}
	for _, template := range []string{"sh -c 'cat {prompt}'", "env A=1 /bin/bash -ec 'cat {prompt}'"} {
		step.Template = template
		if got, err := step.Argv(); err == nil || !strings.Contains(err.Error(), `write "$PROMPT_PATH" instead`) {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

func TestFaultsOfTemplates(t *testing.T) {
	for template, want := range map[string]string{
		"":                               "is empty",
		"run {promt}":                    "{promt}",
		"run {prompt!r}":                 "means nothing",
		"run {prompt":                    "means nothing",
		"run prompt}":                    "a } closes nothing",
		"run 'x":                         "a quote ' is not closed",
		`run x\`:                         `ends with a \`,
		"cat {prompt} | tee x":           "no shell reads it, so | is only a word; write sh -c",
		"run \x00":                       "a zero byte",
		strings.Repeat("x", 17<<10):      "17408 bytes, 16384 at most",
		strings.Repeat("x ", 1001) + "x": "more than 1000 words",
	} {
		if err := CheckTemplate(template); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %s", template, err, want)
		}
	}
	if _, err := (StepCommand{Template: "{manual_input}"}).Argv(); err == nil ||
		!strings.Contains(err.Error(), "the program comes to nothing") {
		t.Errorf("got %v", err)
	}
}

func TestStepCommandOf(t *testing.T) {
	r := aRun(t, workflow.Plan{Name: "w", Steps: []workflow.Step{
		{ID: "plan", Command: []string{"true"}},
		{
			ID: "each", Agent: "coder", Prompt: "p.md", Needs: []workflow.StepID{"plan"},
			Loop: &workflow.Loop{Items: []string{`"a"`, `2`}, IndexVar: "I"}, Model: "m",
		},
	}})
	step(t, r, "plan", workflow.Report{Facts: workflow.Facts{Artifacts: []string{"PLAN.md"}}})
	c, ok := StepCommandOf(r, "each", 3, 1, true)
	want := StepCommand{
		RunID: "r1", StepID: "each", Agent: "coder", Model: "m", Repo: "/repo", Report: "/run/reports/r1__each.json",
		ManualInput: "/run/manual_inputs/r1__each.json", Attempt: 3,
		Deps: []StepDep{{"plan", []string{"PLAN.md"}}}, Loop: &StepLoop{IndexVar: "I", Item: "2", Index: 1},
	}
	if !ok || !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v", c)
	}
	if _, ok := StepCommandOf(r, "nobody", 1, 0, false); ok {
		t.Error("nobody has a command")
	}
	if got := StepLogName("r1", "each", 2); got != "r1__each__attempt2.log" {
		t.Error(got)
	}
}

func FuzzCommandTemplate(f *testing.F) {
	for _, s := range []string{"run {prompt} --x='{repo}' \"{{}}\"", "sh -c 'cat {prompt}'", `a\ b "c\"d" | {agent}`} {
		f.Add(s, "/a b")
	}
	f.Fuzz(func(t *testing.T, template, prompt string) {
		c := StepCommand{Template: template, Prompt: prompt, StepID: "s"}
		argv, err := c.Argv()
		if err != nil {
			return
		}
		if CheckTemplate(template) != nil {
			t.Fatal("it runs, and the check refuses it")
		}
		if len(argv) == 0 || argv[0] == "" {
			t.Fatal("a command without a program")
		}
		c.Prompt = "x"
		plain, err := c.Argv()
		if err != nil || prompt != "" && len(plain) != len(argv) {
			t.Fatalf("the value changes the words: %q, %q", plain, argv)
		}
	})
}
