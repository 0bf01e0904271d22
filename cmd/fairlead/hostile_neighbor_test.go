package main

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/read/view"
)

// neighbor gives orders to another repository: as the agent, with the mark of an agent there, and as an orphan
// that threw its environment away; over the socket, over TCP with the token, and to the files. Then it starts a
// daemon of its own in a third repository.
const neighbor = `bin=$1 how=$2 there=$3 url=$4 mark=$5
run() { env -i PATH="$PATH" XDG_RUNTIME_DIR="$XDG_RUNTIME_DIR" $with "$bin" "$@"; }
ask() { run "$@" --dir "$there" >> words 2>&1; echo "$how $*: $?" >> codes; }
post() { echo "$how POST $1: $(curl -s -o answer -w '%{http_code}' -X POST -H "Authorization: Bearer $(cat "$there/.fairlead/token")" "$url/api/v1/$1")" >> codes; cat answer >> words; }
all() { ask unhold; ask hold; ask start bob; ask once cyd; ask stop bob; ask down; ask channel say desk hello; ask ps; ask open --code; ask agent remove cyd --yes; ask dispatch start; post unhold; post hold; post agents/bob/start; }
case $how in
child) all; how=forged with="FAIRLEAD_MARK=$mark"; all; with=
	setsid sh "$0" "$1" between "$3" "$4" & wait; until test -e over; do sleep 0.02; done
	run up --dir ../mine --listen 127.0.0.1:0 --no-browser > up 2>&1 & until grep -q ready up; do sleep 0.02; done
	run stop eve --dir ../mine >> words 2>&1; echo "mine stop eve: $?" >> codes
	run down --dir ../mine >> words 2>&1; echo "mine down: $?" >> codes;;
between) sh "$0" "$1" orphan "$3" "$4" $$ & exit;;
orphan) while test "$(cut -d ' ' -f 4 /proc/$$/stat)" = "$5"; do sleep 0.02; done; all; touch over;;
esac
`

// X10: an agent without a sandbox is no person towards the daemon of another repository. It reads there, and
// changes nothing.
func TestAgentOfAnotherRepository(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux says which process is at the other end")
	}
	beta := newRig(t, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  bob: {driver: exec, command: [\"true\"], workspace: bob}\n  cyd: {driver: exec, command: [\"true\"], workspace: cyd}\nchannels:\n  desk: {agents: [bob]}\n",
	})
	beta.must("stop", "bob") // a person's pause, and a person's hold
	beta.must("hold")
	dir, err := filepath.EvalSymlinks(beta.dir)
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(beta.url)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(dir))
	alpha := newRig(t, map[string]string{
		"neighbor.sh":        neighbor,
		"mine/fairlead.yaml": "version: 1\nagents:\n  eve: {driver: exec, command: [\"true\"], workspace: eve}\n",
		"fairlead.yaml": "version: 1\nagents:\n  ada: {driver: exec, command: [sh, ../neighbor.sh, " + program + ", child, " + beta.dir +
			", \"http://" + at.Host + "\", " +
			hex.EncodeToString(sum[:8]) + ".bob-1], workspace: ada}\n",
	})
	before, err := beta.client().Journal(t.Context(), apiclient.JournalQuery{})
	if err != nil {
		t.Fatal(err)
	}
	alpha.must("once", "ada")
	alpha.until("ada", "it rests again", func(v view.WhyView) bool { return v.Agent.Session == nil && len(v.Sessions) > 0 })

	var want []string
	for _, how := range []string{"child", "forged", "orphan"} {
		for _, line := range []string{
			"unhold: 3", "hold: 3", "start bob: 3", "once cyd: 3", "stop bob: 3", "down: 3", "channel say desk hello: 3", "ps: 0",
			"open --code: 3", "agent remove cyd --yes: 3",
			"dispatch start: 3", "POST unhold: 409", "POST hold: 409", "POST agents/bob/start: 409",
		} {
			want = append(want, how+" "+line)
		}
	}
	want = append(want, "mine stop eve: 0", "mine down: 0")
	if got := alpha.lines("ada/codes"); !slices.Equal(got, want) {
		t.Errorf("it was answered\n%s\nand should be\n%s\nit was told: %s", strings.Join(got, "\n"), strings.Join(want, "\n"),
			strings.Join(alpha.lines("ada/words"), "\n"))
	}
	if words := strings.Join(alpha.lines("ada/words"), "\n"); strings.Count(words, "may read here and change nothing") != 3*9+3*3*2 ||
		strings.Count(words, "ada-1 of another repository") < 3*13 {
		t.Errorf("it was told: %s", words)
	}
	after, err := beta.client().Journal(t.Context(), apiclient.JournalQuery{})
	if err != nil {
		t.Fatal(err)
	}
	if len(after.Changes) != len(before.Changes) {
		t.Errorf("%d changes became %d", len(before.Changes), len(after.Changes))
	}
	if out, code := beta.fairlead("unhold"); code != cli.ExitDone {
		t.Errorf("a person's order: %d %s", code, out)
	}
}
