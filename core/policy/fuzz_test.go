package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
)

// mayStand lists the commands that MAIN's shell may run, written a second time: what Judge allows is compared
// with this list, which the judge does not use.
var mayStand = strings.Fields(`: [ b2sum base64 basename break bzcat cargo cat cc cd cksum clang cmake cmp column comm continue curl cut date deno df diff
	dirname docker du echo egrep exit expand factor false fgrep file find findmnt fmt fold free g++ gcc getconf getfacl git go grep groups head helm hexdump
	hostname id java javac join jq kubectl locale logname ls lsattr lsblk lscpu make md5sum mypy mysql netstat ninja nl node nodejs npx nproc numfmt od paste perl
	pgrep php pip pip3 pnpm podman printenv printf ps psql pstree pwd pytest python python3 readlink realpath return rev rg ruby ruff rustc sed seq sha1sum
	sha224sum sha256sum sha384sum sha512sum shasum sleep sort sqlite3 ssh stat strings sum tac tail terraform test time tr tree true tsc tty type uname unexpand uniq
	uptime uv vmstat w wc wget which who whoami xxd xzcat yarn zcat bun clang++`)

// unfit returns why a command should not have been allowed; empty: nothing was found. It reads the parse tree
// as simply as possible and shares no code with the judge.
func unfit(command string) (why string) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
	if err != nil {
		return "it does not parse"
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if len(n.Args) > 0 && !standsOnList(n.Args[0]) {
				why = "its command word is not on the list"
			}
		case *syntax.Stmt:
			if n.Background || n.Coprocess {
				why = "something runs in the background"
			}
		case *syntax.Redirect:
			var word strings.Builder
			_ = syntax.NewPrinter().Print(&word, n.Word)
			plain := strings.Trim(word.String(), `"'\`)
			reads := slices.Contains([]syntax.RedirOperator{syntax.RdrIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc}, n.Op)
			copies := (n.Op == syntax.DplOut || n.Op == syntax.DplIn) && strings.Trim(plain, "0123456789-") == ""
			if !reads && !copies && !strings.Contains(strings.NewReplacer(`"`, "", `'`, "", `\`, "").Replace(plain), "/dev/null") {
				why = "a redirect writes to " + plain
			}
		case *syntax.FuncDecl, *syntax.CoprocClause, *syntax.DeclClause, *syntax.LetClause, *syntax.ArithmCmd, *syntax.ExtGlob,
			*syntax.CStyleLoop:
			why = "it holds a form that is denied"
		case *syntax.ProcSubst:
			if n.Op != syntax.CmdIn {
				why = "a process substitution writes"
			}
		}
		return why == ""
	})
	return why
}

// standsOnList reads a word of plain, quoted and escaped letters.
func standsOnList(w *syntax.Word) bool {
	var b strings.Builder
	for _, part := range w.Parts {
		switch p := part.(type) {
		case *syntax.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			if p.Dollar {
				return false
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return false
				}
				b.WriteString(lit.Value)
			}
		default:
			return false
		}
	}
	word := b.String()
	if head, _, isBrace := strings.Cut(word, ","); isBrace && strings.HasPrefix(head, "{") {
		word = head[1:]
	}
	for _, folder := range []string{"/usr/bin/", "/bin/"} {
		word = strings.TrimPrefix(word, folder)
	}
	return slices.Contains(mayStand, word)
}

// FuzzShell checks that no command panics, and that what MAIN may run holds only commands of a list that the
// judge does not know (D8).
func FuzzShell(f *testing.F) {
	scene := policytest.Build(f)
	disk := dispatchfolder.Disk{}
	for _, c := range policytest.Calls(f) {
		if command := c.Command(scene); command != "" {
			f.Add(command)
		}
	}
	where := policytest.Case{}.Where(scene)
	f.Fuzz(func(t *testing.T, command string) {
		raw, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Skip()
		}
		var decoded struct{ Command string }
		if err := json.Unmarshal(raw, &decoded); err != nil {
			t.Fatal(err)
		}
		call := policy.Call{Tool: "Bash", Input: raw, Dir: scene.Repo}
		v := policy.Judge(policy.MainRules(), true, call, where, disk)
		if v.Allow {
			if why := unfit(decoded.Command); why != "" || v.Unsure || v.Row != "" || len(v.Writes) > 0 {
				t.Errorf("MAIN may give %q, though %s: %+v", decoded.Command, why, v)
			}
		} else if v.Reason == "" || v.Capability == "" || v.Row != "D8" {
			t.Errorf("%q is denied without words: %+v", decoded.Command, v)
		}
		confined := call
		confined.Confined = true
		if v := policy.Judge(policy.MainRules(), true, confined, where, disk); !v.Allow && (v.Reason == "" || v.Capability == "") {
			t.Errorf("%q is denied without words in a sandbox: %+v", decoded.Command, v)
		} else if v.Network && len(v.Programs) == 0 {
			t.Errorf("%q gets the network for no program: %+v", decoded.Command, v)
		}
		if v := policy.Judge(policy.AgentRules(), false, call, where, disk); !v.Allow && v.Reason == "" {
			t.Errorf("%q is denied to an agent without words: %+v", decoded.Command, v)
		}
	})
}

// FuzzTool checks that no input of any tool panics, and that no allowed path leads to what X10 protects.
func FuzzTool(f *testing.F) {
	scene := policytest.Build(f)
	disk := dispatchfolder.Disk{}
	for _, c := range policytest.Calls(f) {
		f.Add(c.Tool, string(c.Input(scene)), c.Main)
	}
	where := policytest.Case{}.Where(scene)
	f.Fuzz(func(t *testing.T, tool, input string, main bool) {
		rules := policy.AgentRules()
		if main {
			rules = policy.MainRules()
		}
		v := policy.Judge(rules, main, policy.Call{Tool: tool, Input: json.RawMessage(input), Dir: scene.Repo}, where, disk)
		if !v.Allow && (v.Reason == "" || v.Row == "") {
			t.Errorf("%s %s is denied without words: %+v", tool, input, v)
		}
		for _, p := range v.Writes {
			if v.Allow && !strings.HasPrefix(p, scene.Outputs) && p != scene.Dialogue {
				t.Errorf("%s %s may write %s", tool, input, p)
			}
		}
	})
}

// BenchmarkJudge: a shell command takes well under a millisecond.
func BenchmarkJudge(b *testing.B) {
	scene := policytest.Build(b)
	disk := dispatchfolder.Disk{}
	where := policytest.Case{}.Where(scene)
	for name, command := range map[string]string{
		"short": "git status",
		"long":  "cd src && for f in *.go; do head -n 5 \"./$f\" | grep -n func; done; find . -name '*.go' | xargs wc -l && git log --oneline -n 5",
	} {
		raw, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if v := policy.Judge(policy.MainRules(), true, policy.Call{Tool: "Bash", Input: raw, Dir: scene.Repo, Confined: true},
					where, disk); !v.Allow {
					b.Fatal(v.Reason)
				}
			}
		})
	}
}
