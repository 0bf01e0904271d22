package places_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

// trouble is what users of such walls report. It is tried here, by another test, or said in the documents where a machine alone
// cannot show it.
type trouble struct {
	name  string
	try   func(t *testing.T)
	tests []string // package and test
	doc   string   // a sentence, or a part of one
}

var troubles = []trouble{
	{
		name: "empty files stay behind", try: nothingStays,
		tests: []string{"process/sandbox TestPoints", "process/shim TestViewPoints", "process/sandbox/places TestSeen"},
	},
	{
		name: "a missing file, or an order of mounts, fails every command", try: anyOrder,
		tests: []string{"process/sandbox/places TestWorkspace"},
	},
	{name: "a closed file that does not exist yet is made and read once", try: missingIsClosed},
	{name: "links", try: linksInView, tests: []string{"process/sandbox/places TestLinks", "process/sandbox TestPointThroughALink"}},
	{name: "patterns walk the whole tree", tests: []string{"process/sandbox/places TestCost"}, doc: "a pattern costs nothing"},
	{
		name:  "namespaces are closed, and nothing is said",
		tests: []string{"process/sandbox TestLookWhere", "process/sandbox TestWhy", "cli/doctor TestWallHelp"},
		doc:   "kernel.apparmor_restrict_unprivileged_userns",
	},
	{name: "no fresh /proc in containers", tests: []string{"process/sandbox TestLookWhere", "process/sandbox TestOuterProc"}, doc: "unmask=/proc/*"},
	{
		name:  "toolchains of the home folder are gone",
		tests: []string{"process/sandbox/places TestToolchains", "process/sandbox/places TestSeen"},
	},
	{
		name:  "the agent changes a program that the person runs later",
		tests: []string{"process/sandbox/places TestSeen", "process/sandbox/places TestCacheInView"},
	},
	{name: "HOME points outside", tests: []string{"process/sandbox/places TestSeen"}},
	{name: "agents cannot commit", try: commits, tests: []string{"app TestCommitInASandbox"}},
	{name: "signing fails each commit", try: commits},
	{name: "other owners", try: owners, tests: []string{"process/sandbox TestViewRights", "process/sandbox/places TestRefused"}},
	{
		name:  "servers are not reached",
		tests: []string{"process/sandbox TestNetworkSockets", "process/proxy TestOpen", "process/proxy TestNamedAndLocal"},
		doc:   "`fairlead open AGENT:PORT`",
	},
	{
		name:  "one switch opens the rest of the network",
		tests: []string{"process/sandbox TestNetworkSockets", "process/proxy/outlet TestAttemptsByProxy"},
	},
	{name: "proxies are ignored", tests: []string{"process/proxy/outlet TestClients", "process/proxy TestTransparentTLS"}},
	{name: "certificates on macOS", tests: []string{"process/sandbox TestSeatbeltNetwork"}, doc: "never run"},
	{
		name: "a login that is refreshed signs others out", tests: []string{"process/sandbox/places TestRefreshedByEight"},
		doc: "refresh one login at the same moment",
	},
	{name: "the model switches the wall off", tests: []string{"process/sandbox TestWall"}, doc: "nothing inside switches it off"},
	{name: "off is not off in one folder", tests: []string{"app TestOffIsOff"}, doc: "`sandbox: off` makes no view at all"},
	{
		name: "a sandbox of the program's own does not work inside", tests: []string{"process/driver/codex TestCommand"},
		doc: "danger-full-access",
	},
	{name: "/tmp in memory fills up", try: room, doc: "has at least 1 GiB"},
	{name: "browsers", try: browser, doc: "`--no-sandbox`"},
	{name: "zombies", tests: []string{"process/sandbox TestViewReaps", "process/shim TestViewReapsAll"}},
	{name: "programs outlive the wall", tests: []string{"process/shim TestInView", "app TestInView"}},
	{name: "build daemons are shared", tests: []string{"process/sandbox TestWall", "process/shim TestViewExit"}, doc: "org.gradle.daemon=false"},
	{
		name: "agents take the memory of the machine", tests: []string{"process/shim TestLimits", "work/sessions TestLargest"},
		doc: "Memory, processes and disk are bounded by `limits`",
	},
	{name: "what is denied is reached by another tool", tests: []string{"process/sandbox TestCalls", "process/sandbox TestWall"}},
}

// TestTroubles tries the table, and checks that each row is tried or said.
func TestTroubles(t *testing.T) {
	const reported = 28
	if len(troubles) != reported {
		t.Errorf("%d troubles are known, and the table has %d", reported, len(troubles))
	}
	page, err := os.ReadFile("../../../doc/sandbox.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range troubles {
		t.Run(row.name, func(t *testing.T) {
			if row.try == nil && row.tests == nil && row.doc == "" {
				t.Error("it is neither tried nor said")
			}
			if !strings.Contains(strings.ReplaceAll(string(page), "\n", " "), row.doc) {
				t.Errorf("doc/sandbox.md does not say %q", row.doc)
			}
			for _, test := range row.tests {
				folder, name, _ := strings.Cut(test, " ")
				if !hasTest(t, folder, name) {
					t.Errorf("there is no %s in %s", name, folder)
				}
			}
			if row.try != nil {
				row.try(t)
			}
		})
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, _ := os.ReadFile(file)
		return strings.Contains(string(text), "\nfunc "+name+"(")
	})
}

// tries runs commands in views of one kind, and compares what they print.
func (m *machine) tries(s places.Session, rows map[string]string) {
	m.t.Helper()
	for command, want := range rows {
		if got := m.inView(s, command); !strings.Contains(got, want) || want == "" && got != "" {
			m.t.Errorf("%s: %q, want %q", command, got, want)
		}
		if err := places.End(s.Own); err != nil {
			m.t.Error(err)
		}
	}
}

// nothingStays kills everything of a session at once. What was made for its view is gone after the recovery.
func nothingStays(t *testing.T) {
	m := viewedMachine(t, "repo/.git/ repo/w/main.go=code")
	s := m.session("repo/w")
	s.CannotWrite = []string{"keys/**", "deep/er/**"}
	before := m.names()
	p, err := places.Of(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Make(); err != nil {
		t.Fatal(err)
	}
	points, err := sandbox.MakePoints(s.State, p.View)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(before, m.names()) {
		t.Error("nothing was made for this view, so this shows nothing")
	}
	argv, err := sandbox.WrapView(os.Args[0], []string{"/bin/sh", "-c", "echo ready; read forever"}, p.View)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.SysProcAttr, cmd.Env, cmd.Dir = p.View.Attr(), append(p.Env, "GORACE=atexit_sleep_ms=0"), p.View.Dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := sandbox.RemovePoints(s.State); err != nil || slices.Equal(before, m.names()) {
		t.Errorf("folders of a view that is used were removed (%v)", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for _, f := range points.Files() { // as a kill closes them
		f.Close()
	}
	if err := sandbox.RemovePoints(s.State); err != nil {
		t.Error(err)
	}
	if after := m.names(); !slices.Equal(before, after) {
		t.Errorf("the names, modes and times are\n%s\nand were\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
	}
}

// anyOrder makes the same view of the same places in another order.
func anyOrder(t *testing.T) {
	m := viewedMachine(t, "repo/.git/ repo/w/a/b/c/x=x repo/w/secret/y=y repo/in/")
	s := m.session("repo/w")
	s.CannotWrite, s.Hide = []string{"a/b/**", "none/**"}, []string{m.at("repo/w/secret")}
	p, err := places.Of(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Make(); err != nil {
		t.Fatal(err)
	}
	points, err := sandbox.MakePoints(s.State, p.View)
	if err != nil {
		t.Fatal(err)
	}
	defer points.Remove()
	var first string
	for i := range 4 {
		v := p.View
		v.Places = slices.Clone(v.Places)
		switch n := len(v.Places); i {
		case 1:
			slices.Reverse(v.Places)
		case 2:
			v.Places = append(v.Places[n/2:], v.Places[:n/2]...)
		case 3:
			slices.SortFunc(v.Places, func(a, b sandbox.Place) int { return strings.Compare(b.Path, a.Path) })
		}
		argv, err := sandbox.WrapView(os.Args[0], []string{"/bin/sh", "-c", "cut -d' ' -f4-6 /proc/self/mountinfo | sort; ls -AR ."}, v)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.SysProcAttr, cmd.Env = v.Attr(), append(p.Env, "GORACE=atexit_sleep_ms=0")
		out, err := cmd.CombinedOutput()
		switch {
		case err != nil:
			t.Fatalf("order %d: %v: %s", i, err, out)
		case i == 0:
			first = string(out)
		case string(out) != first:
			t.Errorf("order %d gives\n%s\nand not\n%s", i, out, first)
		}
	}
}

// missingIsClosed tries to make what is closed before it exists.
func missingIsClosed(t *testing.T) {
	m := viewedMachine(t, "repo/w/main.go=code")
	s := m.session("repo/w")
	s.CannotWrite = []string{"keys/**", "deep/er/**"}
	m.tries(s, map[string]string{
		"mkdir -p keys; echo secret > keys/new && cat keys/new":          "Read-only file system",
		"mkdir -p deep/er; echo x > deep/er/new && cat deep/er/new":      "Read-only file system",
		"mv keys away; mkdir keys; echo x > keys/new && cat keys/new":    "busy",
		"mkdir -p .claude; echo x > .claude/settings.json && cat .cl*/*": "Read-only file system",
		"mkdir -p other; echo x > other/new && cat other/new":            "x\n",
		"echo x > deep/new && cat deep/new":                              "x\n",
	})
}

// linksInView starts a view where the home folder is a link, with links in the workspace that lead in all directions.
func linksInView(t *testing.T) {
	m := viewedMachine(t,
		"var/home/u/.nvm/bin/prog=#!/bin/sh var/home/u/.ssh/id=secret var/home/u/repo/.fairlead/tmp/ var/home/u/repo/lib/code=code"+
			" var/home/u/repo/w/.claude/settings.json={} var/home/u/repo/w/src/ homes->var/home var/home/u/.cache/bazel/out=built")
	for name, to := range map[string]string{
		"lib": "../lib", "inner": "src", "bazel-bin": m.at("homes/u/.cache/bazel"), "settings": ".claude", "id": m.at("homes/u/.ssh/id"),
		"dangling": "/no/such", "loop": "loop", "root": "/",
	} {
		if err := os.Symlink(to, m.at("var/home/u/repo/w/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	s := m.session("repo/w")
	s.Root, s.Dir, s.State, s.Own = m.at("homes/u/repo"), m.at("homes/u/repo/w"), m.at("var/home/u/repo/.fairlead"),
		m.at("var/home/u/repo/.fairlead/tmp/coder-1")
	s.Env = []string{"HOME=" + m.at("homes/u"), "PATH=/usr/bin:/bin:" + m.at("homes/u/.nvm/bin")}
	m.tries(s, map[string]string{
		"echo x > ~/x && cat ~/x && cat " + m.at("var/home/u/x"): "x\nx\n",
		"prog && echo ran": "ran",
		"cd " + m.at("homes/u/repo/w") + " && echo x > new && cat new && rm new":    "x\n",
		"cd " + m.at("var/home/u/repo/w") + " && echo x > new && cat new && rm new": "x\n",
		"cat lib/code":    "code",
		"echo > lib/code": "Read-only",
		"echo x > inner/new && cat src/new && rm src/new": "x\n",
		"cat bazel-bin/out":                     "No such file",
		"cat id":                                "No such file",
		"cat root" + m.at("var/home/u/.ssh/id"): "No such file",
		"echo > settings/settings.json":         "Read-only",
		"echo > dangling":                       "nonexistent",
		"cat loop":                              "symbolic links",
		"ln -s .. up && cat up/lib/code; rm up": "code",
	})
}

// commits makes commits in a clone of the agent's own, where the person signs all commits, and is refused one in the person's checkout.
func commits(t *testing.T) {
	m := viewedMachine(t,
		"home/.gitconfig=[user]~name=Ann~email=a@a~signingkey=none~[commit]~gpgsign=true~[tag]~gpgsign=true repo/w/main.go=code repo/clone/x=x")
	git := func(dir string) {
		t.Helper()
		for _, words := range [][]string{
			{"init", "-q", "-b", "main"},
			{"add", "-A"},
			{"-c", "commit.gpgsign=false", "commit", "-q", "-m", "first"},
		} {
			cmd := exec.CommandContext(t.Context(), "git", words...)
			cmd.Dir, cmd.Env = m.at(dir), []string{"HOME=" + m.at("home"), "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("git %q: %v: %s", words, err, out)
			}
		}
	}
	git("repo/w")
	git("repo/clone")
	own := m.session("repo/w")
	m.tries(own, map[string]string{
		"echo more >> main.go; git commit -qam more && echo made":                                    "Read-only",
		"git log --format=%s; git status --short > /dev/null && git diff > /dev/null && echo looked": "first\nlooked",
	})
	clone := m.session("repo/clone")
	clone.Clone, clone.Name, clone.Mail = m.at("repo/clone"), "Ann", "a@a"
	m.tries(clone, map[string]string{
		"echo more >> x; git commit -qam more && git tag -m v v && git log -1 --format='%s %an %G?'": "more Ann N",
	})
}

// owners looks at who owns what, and at a workspace that belongs to another user.
func owners(t *testing.T) {
	m := viewedMachine(t, "repo/.git/HEAD=ref:_refs/heads/main repo/.git/objects/ repo/.git/refs/ repo/w/main.go=code")
	s := m.session("repo/w")
	m.tries(s, map[string]string{
		"test $(id -u) = $(stat -c %u .) && test $(id -g) = $(stat -c %g main.go) && test -O main.go && echo own": "own",
		"touch new; test -O new && rm new && echo own":                                                            "own",
		"git status --short": "?? ./",
	})
	if os.Getuid() != 0 {
		return
	}
	const other = 54321
	if err := os.Chown(m.at("repo/w"), other, other); err != nil {
		t.Fatal(err)
	}
	s.Ability.Users = false
	m.tries(s, map[string]string{"test $(id -u) = $(stat -c %u .) && id -u": strconv.Itoa(other)}) // root can become the owner
	s.Ability.Users = true
	if _, err := places.Of(s); err == nil || !strings.Contains(err.Error(), "belongs to user 54321") {
		t.Errorf("a workspace of another user: %v", err)
	}
}

// room looks at the sizes of what programs fill.
func room(t *testing.T) {
	m := viewedMachine(t, "repo/w/")
	const least = 1 << 20 // KiB
	s := m.session("repo/w")
	f := strings.Fields(m.inView(s,
		"df -kP /dev/shm | tail -1; dd if=/dev/zero of=/tmp/big bs=1k count=4 2>&1 | tail -1; sync; readlink -f $TMPDIR"))
	if len(f) < 2 {
		t.Fatal(f)
	}
	if size, _ := strconv.Atoi(f[1]); size < least {
		t.Errorf("/dev/shm has %d KiB", size)
	}
	var outside, inside syscall.Stat_t // /tmp is on disk: a file of it is there outside while the session is
	if err := syscall.Stat(filepath.Join(s.Own, "tmp/big"), &inside); err != nil || inside.Size != 4096 {
		t.Errorf("what is written in /tmp is not in the session's folder: %v", err)
	}
	if err := syscall.Stat(s.Own, &outside); err != nil || outside.Dev != inside.Dev {
		t.Errorf("/tmp is not where the session's folder is: %v", err)
	}
	if err := places.End(s.Own); err != nil {
		t.Error(err)
	}
}

// browser starts a real one, with the flag that the documents name, and without it.
func browser(t *testing.T) {
	exe, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium here")
	}
	m := viewedMachine(t, "repo/w/page.html=<p>drawn</p>")
	start := "timeout 60 " + exe + " --headless --disable-gpu --dump-dom %s file://$PWD/page.html 2>&1; echo; ls -A ~/.config"
	m.tries(m.session("repo/w"), map[string]string{fmt.Sprintf(start, "--no-sandbox"): "drawn"})
	if got := m.inView(m.session("repo/w"), fmt.Sprintf(start, "")); strings.Contains(got, "drawn") {
		t.Errorf("its own sandbox works inside, and the documents say that it does not: %q", got)
	}
}
