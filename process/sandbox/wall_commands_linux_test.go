package sandbox

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// differs are commands whose output inside is another one, with the reason. The exit code is the same.
var differs = map[string]string{
	"ps aux | head":        "only the processes of the view are there",
	"ps -ef | grep python": "only the processes of the view are there",
	"top -bn1 | head -5":   "only the processes of the view are there, and it counts them",
	"lsof -i :8080":        "only the processes of the view are there",
	"ss -tlnp":             "the programs of sockets outside have no name",
	"netstat -an | head":   "the list of sockets changes by itself, and the kernel's files of it are below the process",
	"df -h .":              "the folder is a mount point of its own",
	"free -h":              "it changes by itself",
	"date":                 "it changes by itself",
	"date +%s":             "it changes by itself",

	"ls -ld /tmp | cut -c1-10":      "the folder is the session's alone",
	"ls -ld /var/tmp/ | cut -c1-10": "the folder is the session's alone",
	"lscpu | head -3":               "there is no /sys; /proc/cpuinfo has the same",
	"lsblk; true":                   "there is no /sys",
	"last -n 1 | tail -1; true":     "the logs of the machine are not there",
	"dmesg | head -1; true":         "the log of the kernel is closed",
	"unshare -U true; true":         "nested namespaces are closed",
}

// differsForRoot are the same where the test is root: the program runs as another user.
var differsForRoot = map[string]string{
	"whoami":                         "the program runs as the owner of the workspace",
	"su -c true </dev/null; echo $?": "set-user-ID programs gain nothing",
	"node -e 'console.log(require(\"os\").userInfo().homedir)'": "it is that of the user in /etc/passwd",
}

// changing are parts of an output that are never the same twice.
var changing = regexp.MustCompile(`\b[0-9]+(\.[0-9]+)? ?(s|ms|seconds?)\b|/tmp/[A-Za-z0-9_/.-]*`)

// ofPlace are parts of an output that are about the place: the folder above, the number of the mount, and where the test is root, the
// owner.
var ofPlace = regexp.MustCompile(`(?m)^d.* \.\.\n|Device: \S+|\b(root|nobody) +(root|nogroup)\b|Uid: \([^)]*\) +Gid: \([^)]*\)`)

//go:embed testdata/ordinary-commands.txt
var ordinaryCommands string

//go:embed testdata/more-commands.txt
var moreCommands string

// TestWallOrdinaryCommands runs commands that a coordinator needs, and others that ask about the machine, outside and in a view: what
// works outside gives the same exit code and output inside.
func TestWallOrdinaryCommands(t *testing.T) {
	if a := Abilities(); a.By != ByNamespaces {
		t.Skipf("there is no view here: %v", a.Why)
	}
	t.Parallel()
	commands := []string{}
	for line := range strings.Lines(ordinaryCommands) {
		commands = append(commands, strings.TrimSpace(line))
	}
	every, n := testsize.Pick(4, 1, 1), 0 // of those that are not a coordinator's
	for line := range strings.Lines(moreCommands) {
		if n++; n%every == 0 || !testsize.CI() && strings.Contains(line, "/dev/") {
			commands = append(commands, strings.TrimSpace(line))
		}
	}
	v := newViewed(t)
	prepare(t, v)
	tried := 0
	for _, command := range commands {
		if command == "" || strings.HasPrefix(command, "#") {
			continue
		}
		out, code := ordinary(t, v, command, false)
		if code != 0 {
			continue
		}
		tried++
		same := differs[command] == "" && (os.Getuid() != 0 || differsForRoot[command] == "")
		if inside, inCode := ordinary(t, v, command, true); inCode != code || same && inside != out {
			t.Errorf("%s: inside %d %q, outside %d %q", command, inCode, inside, code, out)
		}
	}
	const least = 60
	if tried < least {
		t.Errorf("%d commands worked outside: too few", tried)
	}
	t.Log(tried, "commands")
}

// prepare makes a repository for the commands.
func prepare(t *testing.T, v *viewed) {
	t.Helper()
	for name, text := range map[string]string{
		"README.md": "# Hi\n\nread me\n", "app.py": "def main():\n    print(1)\n", "data.csv": "a,b\n1,2\n",
		"data.json": "[{\"a\":1},{\"a\":2}]\n", "package.json": "{\"scripts\":{\"t\":\"x\"},\"dependencies\":{\"d\":\"1\"}}\n",
		"a.txt": "a\n", "b.txt": "b\n", "a": "a\n", "b": "a\nb\n", "docs/guide.md": "guide\n", "src/x.py": "print(2)\n",
		".claude/agents/fullstack-engineer.md": "agent\n",
	} {
		p := filepath.Join(v.in, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	script := `git init -q -b main; git config user.name me; git config user.email me@me; git config remote.origin.url https://none/x
git add -A; git commit -qm first; for i in 2 3 4; do echo "print($i)" >> app.py; git commit -qam "change $i"; done; git tag v1; echo more >> README.md; gzip -k a.txt; mv a.txt.gz x.gz`
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Dir, cmd.Env = v.in, environOf(v)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func environOf(v *viewed) []string {
	return []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/somebody", "LC_ALL=C", "TZ=UTC", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=" + v.in, "GIT_PAGER=cat", "GORACE=atexit_sleep_ms=0",
	}
}

// ordinary runs one command.
func ordinary(t *testing.T, v *viewed, command string, inside bool) (out string, code int) {
	t.Helper()
	argv := []string{"bash", "-c", command}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	if inside {
		wrapped, err := WrapView(os.Args[0], argv, v.view)
		if err != nil {
			t.Fatal(err)
		}
		cmd = exec.CommandContext(ctx, wrapped[0], wrapped[1:]...)
		cmd.SysProcAttr = v.view.Attr()
	}
	cmd.Dir, cmd.Env = v.in, environOf(v)
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fmt.Sprint(err), -1
	}
	return ofPlace.ReplaceAllString(changing.ReplaceAllString(string(b), "…"), ""), cmd.ProcessState.ExitCode()
}
