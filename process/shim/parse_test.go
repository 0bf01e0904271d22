package shim

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fairlead-dev/fairlead/process/spawn"
)

// TestMark: marks are listed outermost first, and no process inherits a shim's name.
func TestMark(t *testing.T) {
	got := markedEnv([]string{"A=1", "FAIRLEAD_MARK=x.s", "A=2", "broken", "=C:", "FAIRLEAD_SHIM=x", "E="}, "y.t-1")
	if want := []string{"A=2", "E=", "FAIRLEAD_MARK=x.s,y.t-1"}; !slices.Equal(got, want) {
		t.Fatalf("%q", got)
	}
	environ := []byte(strings.Join(got, "\x00") + "\x00")
	if got := marksIn(environ); !slices.Equal(got, []string{"x.s", "y.t-1"}) {
		t.Fatalf("%q", got)
	}
	if markOf("/a", "s") == markOf("/b", "s") {
		t.Fatal("two workspaces share a mark")
	}
}

// TestBelow: a whole tree is found, rings and orphans do no harm, zombies do not count.
func TestBelow(t *testing.T) {
	all := []Process{
		{PID: 1},
		{PID: 10, parent: 1},
		{PID: 11, parent: 10},
		{PID: 12, parent: 11, zombie: true},
		{PID: 13, parent: 12},
		{PID: 20, parent: 1},
		{PID: 30, parent: 31},
		{PID: 31, parent: 30},
	}
	pids := func(ps []Process) (out []int) {
		for _, p := range ps {
			out = append(out, p.PID)
		}
		return out
	}
	if got := pids(below(all, 10)); !slices.Equal(got, []int{11, 13}) {
		t.Fatal(got)
	}
	if got := pids(below(all, 30)); !slices.Equal(got, []int{31}) {
		t.Fatal(got)
	}
	if got := pids(without(all, below(all, 1), 13)); !slices.Equal(got, []int{20}) {
		t.Fatal("whoever sweeps would end itself:", got)
	}
}

// TestFaults: every typed error arrives as what it was.
func TestFaults(t *testing.T) {
	for _, err := range []error{
		&Fenced{1, 2}, &spawn.AlreadyStarted{Session: "s"}, &spawn.CannotStart{Why: "w"},
		&InputGap{3, 2}, &InputFull{9}, ErrInputClosed, ErrEnded, errors.New("disk"),
	} {
		if got := toFault(err).err(); got.Error() != err.Error() {
			t.Errorf("%v became %v", err, got)
		}
	}
	if toFault(nil).err() != nil {
		t.Error("no fault became one")
	}
}

// TestOlderAndNewer: fields that one side does not know are ignored.
func TestOlderAndNewer(t *testing.T) {
	var buf bytes.Buffer
	ok(t, writeFrame(&buf, map[string]any{"id": 7, "op": "hello", "v": 99, "fence": 3, "new": []int{1}}))
	var o order
	ok(t, readFrame(&buf, frameBytesMax, &o))
	if o.Op != "hello" || o.Fence != 3 || o.Version != 99 {
		t.Fatalf("%+v", o)
	}
}

// TestLaunchKeepsBytes: arguments and variables that are not UTF-8 pass unmended.
func TestLaunchKeepsBytes(t *testing.T) {
	s := Spec{Session: "s", Launch: spawn.Launch{Argv: []string{"\xff\xfe"}, Env: []string{"A=\x80"}, Dir: "/\xfa"}}
	var buf bytes.Buffer
	ok(t, writeFrame(&buf, order{Op: "launch", Launch: &s}))
	var o order
	ok(t, readFrame(&buf, frameBytesMax, &o))
	if diff := cmp.Diff(*o.Launch, s); diff != "" {
		t.Fatal(diff)
	}
}

// TestSpecCheck: what cannot be a session is refused before anything is made.
func TestSpecCheck(t *testing.T) {
	for _, s := range []Spec{
		{Session: "", Launch: spawn.Launch{Argv: []string{"x"}}},
		{Session: "a/b", Launch: spawn.Launch{Argv: []string{"x"}}},
		{Session: "a,b", Launch: spawn.Launch{Argv: []string{"x"}}},
		{Session: strings.Repeat("a", sessionNameBytesMax+1), Launch: spawn.Launch{Argv: []string{"x"}}},
		{Session: "a", Launch: spawn.Launch{Argv: []string{""}}},
		{Session: "a", Launch: spawn.Launch{Argv: []string{"x", "a\x00b"}}},
		{Session: "a", Launch: spawn.Launch{Argv: []string{"x"}, Dir: "rel"}},
		{Session: "a", Launch: spawn.Launch{Argv: []string{"x"}, Input: make([]byte, launchBytesMax/2+1)}},
	} {
		dir := filepath.Join(t.TempDir(), "s")
		if _, err := Start(t.Context(), dir, s); err == nil {
			t.Errorf("%.40q %q was taken", s.Session, s.Launch.Argv)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Error("and its folder was made")
		}
	}
}

func FuzzFrame(f *testing.F) {
	var buf bytes.Buffer
	_ = writeFrame(&buf, order{ID: 1, Op: "send", Offset: 3, Data: []byte("x")})
	f.Add(buf.Bytes())
	f.Add([]byte{0, 0, 0, 2, '{', '}'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 0, 0, 9, '{'})
	f.Add([]byte("\x00\x00\x00\x1c{\"id\":1,\"op\":\"x\",\"data\":\"\"}"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var o order
		var a answer
		if readFrame(bytes.NewReader(raw), 4096, &o) == nil {
			var again bytes.Buffer
			ok(t, writeFrame(&again, o))
			var o2 order
			ok(t, readFrame(&again, frameBytesMax, &o2))
			if diff := cmp.Diff(o, o2, cmpopts.EquateEmpty()); diff != "" { // no data and none are the same
				t.Fatal(diff)
			}
		}
		if readFrame(bytes.NewReader(raw), 4096, &a) == nil && a.Fault != nil {
			_ = a.Fault.err().Error()
		}
	})
}

func FuzzEnviron(f *testing.F) {
	f.Add([]byte("A=1\x00FAIRLEAD_MARK=a.b,c.d\x00"))
	f.Add([]byte("FAIRLEAD_MARK"))
	f.Add([]byte("\x00\x00=\x00"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, m := range marksIn(raw) {
			if !bytes.Contains(raw, []byte(m)) {
				t.Fatalf("%q is not there", m)
			}
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"v":1,"step":"started","session":"a","mark":"x.a","shim_pid":1}`), []byte("7\n"))
	f.Add([]byte(`{"code":0,"at":"2026-01-01T00:00:00Z","spool_bytes":-1}`), []byte("-1"))
	f.Add([]byte(`{`), []byte(""))
	f.Fuzz(func(t *testing.T, raw, fence []byte) {
		dir := t.TempDir()
		for name, content := range map[string][]byte{agentFile: raw, exitFile: raw, fenceFile: fence} {
			ok(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
		}
		if r, err := readAgent(dir); (r == nil) == (err == nil) {
			t.Fatal("a record that exists was read as none")
		}
		if e, err := readExit(dir); (e == nil) == (err == nil) || e != nil && e.SpoolBytes < 0 {
			t.Fatal("an exit that exists was read as none, or as nonsense")
		}
		n, err := readFence(dir)
		if err == nil && n > 0 && raiseFence(dir, n-1) == nil {
			t.Fatal("a lower epoch was obeyed")
		}
	})
}

// TestFollowerCut: a truncated spool is a fault, not an end.
func TestFollowerCut(t *testing.T) {
	h := start(t, t.TempDir(), agent(t, "bytes", "1000"))
	done(t, h)
	ok(t, os.Truncate(filepath.Join(h.Folder(), spoolFile), 500))
	r, err := h.Output(t.Context(), 0)
	ok(t, err)
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); n != 500 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("a spool that was cut reads as whole: %d %v", n, err)
	}
}
