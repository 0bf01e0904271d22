package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// listens binds a socket as a program outside may: by a path of any form, from the folder in which it works.
func listens(text string) {
	dir, name, _ := strings.Cut(text, " ")
	err := os.Chdir(dir)
	if folder, base, is := strings.Cut(name, "//"); is { // by the descriptor of the folder
		fd, fault := unix.Open(folder, unix.O_PATH, 0)
		err, name = errors.Join(err, fault), fmt.Sprintf("/proc/self/fd/%d/%s", fd, base)
	}
	l, fault := net.Listen("unix", name)
	if err = errors.Join(err, fault); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(worked)
	for err == nil { // it is ended from outside
		_, err = l.Accept()
	}
}

// TestViewCoversSockets: a program outside listens in a place of a view. The view has no way to it, unless its list of sockets names it.
func TestViewCoversSockets(t *testing.T) {
	v := newViewed(t)
	shown, linked := filepath.Join(v.out, "shown"), filepath.Join(v.out, "linked")
	if err := errors.Join(os.Mkdir(shown, 0o700), os.MkdirAll(filepath.Join(v.in, "deep"), 0o700), os.Symlink(shown, linked)); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Dir(os.Args[0])
	v.view.Places = append(v.view.Places, Place{Path: exe, Access: Read}, Place{Path: shown, Access: Read},
		Place{Path: "/given", From: shown, Access: Read})
	for name, c := range map[string]struct{ dir, bind, inside string }{
		"in a writable folder":                   {"/", filepath.Join(v.in, "a"), filepath.Join(v.in, "a")},
		"in a folder that is shown":              {"/", filepath.Join(shown, "b"), filepath.Join(shown, "b")},
		"in a folder that has another path":      {"/", filepath.Join(shown, "c"), "/given/c"},
		"through a link":                         {"/", filepath.Join(linked, "d"), filepath.Join(shown, "d")},
		"by a relative path":                     {v.in, "deep/e", filepath.Join(v.in, "deep", "e")},
		"by a relative path with a dot":          {filepath.Join(v.in, "deep"), "./f", filepath.Join(v.in, "deep", "f")},
		"by the descriptor of a folder":          {"/", shown + "//g", filepath.Join(shown, "g")},
		"with spaces and a line end in a name":   {"/", filepath.Join(shown, "h i\n0: j"), filepath.Join(shown, "h i\n0: j")},
		"with a name that looks like the list's": {"/", filepath.Join(shown, "0: 1 2 3 4 5 6 7"), filepath.Join(shown, "0: 1 2 3 4 5 6 7")},
	} {
		cmd := again("listens", nil)
		cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", wallVar+"=listens "+c.dir+" "+c.bind)
		out, err := cmd.StdoutPipe()
		if err = errors.Join(err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
		said := make([]byte, len(worked))
		if _, err := out.Read(said); string(said) != worked {
			t.Fatalf("%s: %s %v", name, said, err)
		}
		for _, opened := range []bool{false, true} {
			view := v.view
			view.Required = []Row{RowSocket}
			if opened {
				view.Required, view.Sockets = nil, []string{c.inside}
			}
			got := joinedIn(t, view, c.inside)
			want := map[bool]string{false: unix.ECONNREFUSED.Error(), true: worked}[opened]
			if got != want {
				t.Errorf("%s, opened: %v: %q, want %q", name, opened, got, want)
			}
		}
	}
}

// joinedIn connects to a socket inside a view.
func joinedIn(t *testing.T, view View, at string) string {
	t.Helper()
	argv, err := WrapView(os.Args[0], []string{os.Args[0]}, view)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.SysProcAttr, cmd.Env = view.Attr(), []string{"PATH=/usr/bin:/bin", "GORACE=atexit_sleep_ms=0", wallVar + "=joins " + at}
	out, _ := cmd.CombinedOutput()
	return strings.TrimSpace(string(out))
}

// TestAbstractSockets: where Landlock does not hold abstract sockets, the row is said not to be held.
func TestAbstractSockets(t *testing.T) {
	need(t)
	newest, _ := Supported()
	for abi := range newest + 1 {
		for _, by := range Ways() {
			if by.By == ByLandlock && abi < abiMin {
				continue // it is not started
			}
			t.Setenv(askedVar, strconv.Itoa(abi))
			unheld, err := trial(t.Context(), by.Apply(View{}))
			if err != nil {
				continue // this machine cannot do that
			}
			want := by.By == ByNamespaces && abi < abiApart // alone it closes all unix sockets
			if got := slices.Contains(unheld, RowSocket); got != want {
				t.Errorf("Landlock %d, %+v: not held are %v", abi, by, unheld)
			}
			if open, err := trial(t.Context(), by.Apply(View{Sockets: []string{"/nonexistent"}})); slices.Contains(open,
				RowSocket) != (abi < abiApart) {
				t.Errorf("Landlock %d, with single sockets, %+v: not held are %v (%v)", abi, by, open, err)
			}
		}
	}
}
