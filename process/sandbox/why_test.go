package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each way in which namespaces are closed; the number and the step tell them apart, never a text.
func TestWhy(t *testing.T) {
	ubuntu, users := Setting{1, true}, []string{"user.max_user_namespaces"}
	const exe = "/usr/local/bin/fairlead"
	for _, tt := range []struct {
		name string
		f    Facts
		want Cause
		help string // in what helps first
	}{
		{
			"no namespaces at all",
			Facts{Zero: users, Step: StepClone, Errno: syscall.ENOSPC},
			CauseSetting,
			"sudo sysctl -w user.max_user_namespaces=15000",
		},
		{
			"none at all, in a container",
			Facts{Zero: users, Step: StepClone, Errno: syscall.ENOSPC, Container: Docker},
			CauseSetting,
			"on the machine of the container",
		},
		{
			"no processes",
			Facts{Zero: []string{"user.max_pid_namespaces"}, Step: StepClone, Errno: syscall.ENOSPC},
			CauseSetting,
			"sudo sysctl -w user.max_pid_namespaces=15000",
		},
		{"none are needed", Facts{Zero: users, Step: StepClone, Errno: syscall.EIO}, CauseUnknown, "ask"},
		{"too many", Facts{Step: StepClone, Errno: syscall.ENOSPC}, CauseLimit, "end programs"},
		{"too deep", Facts{Step: StepClone, Errno: syscall.EUSERS}, CauseLimit, "end programs"},
		{
			"Debian's setting",
			Facts{Clone: Setting{0, true}, Step: StepClone, Errno: syscall.EPERM},
			CauseSetting,
			"kernel.unprivileged_userns_clone=1",
		},
		{"Debian's setting is open", Facts{Clone: Setting{1, true}, Step: StepClone, Errno: syscall.EPERM}, CauseUnknown, "ask"},
		{"a kernel without", Facts{Step: StepClone, Errno: syscall.EINVAL}, CauseKernel, "CONFIG_USER_NS"},
		{
			"Ubuntu, at the start",
			Facts{AppArmor: ubuntu, Step: StepClone, Errno: syscall.EACCES, Exe: exe},
			CauseAppArmor,
			"profile fairlead " + exe + " ",
		},
		{
			"Ubuntu, at the start, another number",
			Facts{AppArmor: ubuntu, Step: StepClone, Errno: syscall.EPERM, Exe: exe},
			CauseAppArmor,
			"userns,",
		},
		{"Ubuntu, at the mount", Facts{AppArmor: ubuntu, Step: StepMount, Errno: syscall.EACCES, Exe: exe}, CauseAppArmor, "userns,"},
		{"Ubuntu, at /proc", Facts{AppArmor: ubuntu, Step: StepProc, Errno: syscall.EPERM, Exe: exe}, CauseAppArmor, "userns,"},
		{
			"Docker's filter on Ubuntu",
			Facts{AppArmor: ubuntu, Step: StepClone, Errno: syscall.EPERM, Container: Docker},
			CauseSeccomp,
			"its default plus clone",
		},
		{
			"Ubuntu below a container",
			Facts{AppArmor: ubuntu, Step: StepClone, Errno: syscall.EACCES, Container: Podman},
			CauseAppArmor,
			"on the machine",
		},
		{"Docker's filter", Facts{Step: StepClone, Errno: syscall.EPERM, Container: Docker}, CauseSeccomp, "its default plus clone"},
		{
			"Docker's filter, at a mount",
			Facts{Step: StepMount, Errno: syscall.EPERM, Container: Docker},
			CauseSeccomp,
			"its default plus clone",
		},
		{
			"Docker's AppArmor",
			Facts{Step: StepMount, Errno: syscall.EACCES, Container: Docker},
			CauseConfined,
			"docker run --security-opt apparmor=unconfined",
		},
		{
			"another container's AppArmor",
			Facts{Step: StepMount, Errno: syscall.EACCES, Container: OtherContainer},
			CauseConfined,
			"--security-opt apparmor=unconfined",
		},
		{"a masked /proc", Facts{Step: StepProc, Errno: syscall.EPERM, Container: Podman}, CauseMaskedProc, "leave it so"},
		{"a masked /proc of a service", Facts{Step: StepProc, Errno: syscall.EPERM}, CauseMaskedProc, "leave it so"},
		{"anything else", Facts{Step: StepMount, Errno: syscall.EIO}, CauseUnknown, "ask"},
		{
			"root without rights",
			Facts{Root: true, Step: StepClone, Errno: syscall.EPERM, Container: Docker},
			CauseRights,
			"as an ordinary user",
		},
		{
			"root, where a filter denies mounts",
			Facts{Root: true, Step: StepMount, Errno: syscall.EPERM, Container: Docker},
			CauseSeccomp,
			"its default plus clone",
		},
		{"Landlock alone", Facts{Step: StepLandlock, Said: "old"}, CauseLandlock, "lsm="},
		{"no call of the kernel", Facts{Step: StepOther, Errno: syscall.ENOENT}, CauseUnknown, "ask"},
		{"no rule is known", Facts{Step: StepMount, Errno: syscall.EPERM}, CauseUnknown, "ask"},
	} {
		if tt.f.Said == "" {
			tt.f.Said = "the trial's words"
		}
		got := Why(tt.f)
		if got.Cause != tt.want {
			t.Errorf("%s: %+v, want %q", tt.name, got, tt.want)
			continue
		}
		if got.What == "" || len(got.Do) == 0 || !strings.Contains(got.Do[0], tt.help) {
			t.Errorf("%s: %q, %q does not begin with %q", tt.name, got.What, got.Do, tt.help)
		}
	}
}

// A failed trial always has a cause, and something that helps.
func TestWhyEveryFact(t *testing.T) {
	for _, step := range []Step{StepClone, StepProc, StepMount, StepLandlock, StepOther, "another"} {
		for _, errno := range []syscall.Errno{
			0, syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EUSERS, syscall.EINVAL,
			syscall.ENOSYS, syscall.EIO,
		} {
			for _, in := range []Container{NoContainer, Docker, Podman, OtherContainer} {
				for _, s := range []Setting{{}, {0, true}, {1, true}} {
					for _, armor := range []Setting{{}, {0, true}, {1, true}} {
						f := Facts{
							Clone: s, AppArmor: armor, Container: in, Step: step, Errno: errno, Exe: "/usr/bin/fairlead",
							Said: "words",
						}
						if got := Why(f); got.Cause == "" || got.What == "" || len(got.Do) == 0 {
							t.Errorf("%+v: %+v", f, got)
						}
					}
				}
			}
		}
	}
}

// The command for Ubuntu is for this program alone, and no name of a file becomes a part of it.
func TestProfileCommand(t *testing.T) {
	for exe, ok := range map[string]bool{
		"/usr/local/bin/fairlead": true, "/home/me/go/bin/fairlead-1.2+x": true,
		"/tmp/a b": false, "/tmp/*": false, "/tmp/a\nEOF\nid": false, "/tmp/{a,b}": false, "/tmp/'": false, "relative": false, "": false,
		"/tmp/@{HOME}": false,
	} {
		if got := profileCommand(exe); strings.HasPrefix(got, "sudo tee") != ok {
			t.Errorf("%q: %s", exe, got)
		}
	}
	dir := t.TempDir()
	script := strings.ReplaceAll(profileCommand("/usr/bin/fairlead"), "/etc/apparmor.d", dir)
	for name, text := range map[string]string{
		"sudo":            "#!/bin/sh\nexec \"$@\"\n",
		"apparmor_parser": "#!/bin/sh\ntest \"$1\" = -r && cat \"$2\"\n",
	} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	cmd := exec.Command("sh", "-c", script)
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil ||
		!strings.HasSuffix(string(out),
			"profile fairlead /usr/bin/fairlead flags=(unconfined) {\n  userns,\n  include if exists <local/fairlead>\n}\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLookAround reads made-up machines: their settings, and the marks of containers.
func TestLookAround(t *testing.T) {
	const user, clone, armor = "proc/sys/user/max_user_namespaces", "proc/sys/kernel/unprivileged_userns_clone",
		"proc/sys/kernel/apparmor_restrict_unprivileged_userns"
	for name, tt := range map[string]struct {
		files map[string]string
		want  Facts
	}{
		"nothing is known": {nil, Facts{}},
		"all is open": {
			map[string]string{user: "15000\n", clone: "1\n", armor: "0\n"},
			Facts{Clone: Setting{1, true}, AppArmor: Setting{0, true}},
		},
		"no user namespaces": {map[string]string{user: "0\n"}, Facts{Zero: []string{"user.max_user_namespaces"}}},
		"no others": {
			map[string]string{
				user: "1\n", "proc/sys/user/max_pid_namespaces": "0\n", "proc/sys/user/max_mnt_namespaces": "0\n",
				"proc/sys/user/max_ipc_namespaces": "0\n",
			},
			Facts{Zero: []string{"user.max_mnt_namespaces", "user.max_pid_namespaces", "user.max_ipc_namespaces"}},
		},
		"Debian":               {map[string]string{clone: "0\n"}, Facts{Clone: Setting{0, true}}},
		"Ubuntu":               {map[string]string{armor: "1\n"}, Facts{AppArmor: Setting{1, true}}},
		"no number":            {map[string]string{user: "none", armor: ""}, Facts{}},
		"a machine":            {map[string]string{"proc/1/cgroup": "0::/init.scope\n"}, Facts{}},
		"Docker":               {map[string]string{".dockerenv": "", "proc/1/cgroup": "0::/\n"}, Facts{Container: Docker}},
		"Podman":               {map[string]string{"run/.containerenv": ""}, Facts{Container: Podman}},
		"Podman as Docker":     {map[string]string{"run/.containerenv": "", ".dockerenv": ""}, Facts{Container: Podman}},
		"Docker by its cgroup": {map[string]string{"proc/1/cgroup": "12:cpuset:/docker/0123\n"}, Facts{Container: Docker}},
		"Podman by its cgroup": {map[string]string{"proc/1/cgroup": "0::/machine.slice/libpod-0123.scope\n"}, Facts{Container: Podman}},
		"Kubernetes":           {map[string]string{"proc/1/cgroup": "0::/kubepods.slice/pod1\n"}, Facts{Container: OtherContainer}},
		"LXC":                  {map[string]string{"proc/1/cgroup": "0::/lxc/one\n"}, Facts{Container: OtherContainer}},
		"systemd-nspawn":       {map[string]string{"run/systemd/container": "systemd-nspawn\n"}, Facts{Container: OtherContainer}},
	} {
		root := t.TempDir()
		for p, text := range tt.files {
			p = filepath.Join(root, p)
			if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, []byte(text), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		got := lookAround(root)
		if got.Exe == "" {
			t.Errorf("%s: the program has no path", name)
		}
		if got.Exe = ""; !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
