package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
)

// ordinary are commands of an agent's working day. None of them is denied or asked about.
var ordinary = []string{
	"git status -sb", "git diff HEAD~1 -- app.py", "git log --oneline --graph --all -n 30", "git ls-files | xargs wc -l | sort -n | tail",
	"git stash list", "git show HEAD:app.py | head -20",
	"ls -la", "ls *.md", "ls src/*.py 2>/dev/null | head", "tree -L 2 -I node_modules", `find . -name "*.py" -not -path "*/.git/*"`,
	"find . -type f | wc -l",
	"grep -rn main src | head -20", "rg -n 'func main' --type go", "cat go.mod && wc -l *.go", "sed -n '1,40p' app.py",
	"awk '{print $1}' data.csv | sort | uniq -c",
	"go test ./...", "go test -race -run 'TestX' ./pkg/... 2>&1 | tail -20", "go build ./... && go vet ./...", "gofmt -l .", "python3 x.py",
	"python3 -m pytest -q tests", "python3 -c 'print(1)'",
	"npm ci && npm run build", "npx tsc --noEmit", "node x.js", "cargo test --quiet", "make -j4", "make test 2>&1 | tee /dev/null",
	"cmake -S . -B build && cmake --build build", "docker compose ps",
	"cd src && go test ./...", "pushd src && make && popd", "time make", "timeout 60 go test ./...", "env CGO_ENABLED=0 go build ./...",
	"CGO_ENABLED=0 go build ./...", "FOO=bar npm test",
	"for f in a b c; do echo $f; done", "for f in src/*.go; do gofmt -l \"$f\"; done", "if [ -f go.mod ]; then go test ./...; fi",
	"test -f x || make x", "while read -r line; do echo \"$line\"; done < list.txt",
	"sleep 1; curl -s localhost:8080/health", "curl -s https://example.org/data.json | jq .name", "echo done", "printf '%s\\n' a b",
	"which go python3", "date +%s", "ps aux | grep server", "kill 123",
	"source .venv/bin/activate && pytest", "bash scripts/test.sh", "sh -c 'go test ./...'", "xargs -n1 echo < list.txt",
	"find . -name '*.go' -exec gofmt -l {} +", "tar -tzf a.tgz", "diff -u a b", "echo \"$HOME\"", "echo $PATH",
}

func TestOrdinaryCommandsOfAgents(t *testing.T) {
	scene := policytest.Build(t)
	for _, command := range ordinary {
		input, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		call := policy.Call{Tool: "Bash", Input: input, Dir: scene.Repo, AgentID: "a1"}
		where := policy.Where{Repo: scene.Repo, Session: scene.Session, Outputs: scene.Outputs, Home: scene.Home, Model: true}
		if v := policy.Judge(policy.AgentRules(), false, call, where, dispatchfolder.Disk{}); !v.Allow || v.Unread != "" {
			t.Errorf("%s: allowed %t (%s), not understood: %q", command, v.Allow, v.Reason, v.Unread)
		}
	}
}
