package policy

import (
	"encoding/json"
	"testing"
)

// The permissions are in every line of state.jsonl as the seed spells and orders them (D1).
func TestRulesAreTheSeeds(t *testing.T) {
	for _, c := range []struct {
		rules Rules
		want  string
	}{
		{MainRules(), `{"can_write":["*.md","*.txt","*.log","*.json","*.csv","non-executable files"],` +
			`"cannot_write":["*.py","*.js","*.ts","*.sh","*.go","*.rs","*.c","*.cpp","*.java","package.json","requirements.txt","Dockerfile","Makefile","any executable file"],` +
			`"can_execute":["read","list","search","analyze","information-gathering functions only"],` +
			`"cannot_execute":["run","exec","eval","compile","build"]}`},
		{AgentRules(), `{"can_write":["*"],"can_execute":["*"]}`},
	} {
		got, err := json.Marshal(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("the rules are\n%s\nthe seed's are\n%s", got, c.want)
		}
	}
}

// An empty call gets an answer.
func TestNothingIsDenied(t *testing.T) {
	for _, tool := range []string{"", "Write", "Bash", "Read", "Task", "Skill", "mcp__x__y"} {
		for _, input := range []string{
			"", "{}", "null", `{"command":"git status; cat x; cd; cd y; ls > z"}`,
			`{"file_path":"a.md","path":"b"}`,
		} {
			v := Judge(Rules{}, true, Call{Tool: tool, Input: json.RawMessage(input)}, Where{Model: true}, nowhere{})
			harmless := tool == "Task" || tool == "Read" && input != "" && input != "null"
			if v.Allow != harmless || !v.Allow && v.Reason == "" {
				t.Errorf("%s %s: %+v", tool, input, v)
			}
		}
	}
}

type nowhere struct{}

func (nowhere) Look(path string) (File, error) { return File{Path: path, Kind: Missing}, nil }
