package shim

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// speaks makes the record of a session name a protocol.
func speaks(t *testing.T, dir string, number int) {
	t.Helper()
	path := filepath.Join(dir, agentFile)
	record, err := os.ReadFile(path)
	ok(t, err)
	was := fmt.Appendf(nil, `"v":%d,`, ownProtocol())
	if !bytes.Contains(record, was) {
		t.Fatalf("the record names no protocol: %s", record)
	}
	ok(t, os.WriteFile(path, bytes.Replace(record, was, fmt.Appendf(nil, `"v":%d,`, number), 1), 0o600))
}

// A living shim of another protocol is not adopted, whether that is older or newer: it keeps its fence and its session, the
// output is read, and EndOther ends it. A shim of the same protocol is adopted, and ends as before.
func TestOtherProtocol(t *testing.T) {
	for name, c := range map[string]struct {
		number int
		agent  string
		grace  time.Duration
	}{
		"older, at once":     {ownProtocol() - 1, "deaf", 0},
		"newer, at once":     {ownProtocol() + 1, "tree", 0},
		"newer, with grace":  {ownProtocol() + 1, "hang", patience},
		"newer, hangs":       {ownProtocol() + 1, "deaf", 50 * time.Millisecond},
		"the same is opened": {ownProtocol(), "tree", 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			spec := agent(t, c.agent)
			spec.Grace = time.Minute
			h := start(t, dir, spec)
			said := lines(t, h, 1)[0]
			begun := h.Begun()
			h.Close()
			speaks(t, dir, c.number)

			h, st, err := Adopt(t.Context(), dir, 2)
			if c.number == ownProtocol() {
				if err != nil || st.Phase != Running || st.AgentPID != begun.AgentPID {
					t.Fatalf("not adopted: %+v %v", st, err)
				}
				ok(t, h.End(t.Context(), 0))
				if st := done(t, h); st.Phase != Exited || st.Exit == nil {
					t.Errorf("ended %+v", st)
				}
				return
			}
			want := OtherProtocol{begun.ShimPID, c.number, ownProtocol()}
			if other := new(OtherProtocol); !errors.As(err, &other) || *other != want {
				t.Fatalf("adopted with %+v: %v", st, err)
			}
			if fence, err := readFence(dir); err != nil || fence != 1 {
				t.Errorf("its fence is %d: %v", fence, err)
			}
			sight, err := Look(t.Context(), dir)
			if err != nil || sight.Phase != Running || sight.Answers || sight.Agent != Lives || sight.Other == nil || *sight.Other != want {
				t.Errorf("seen as %+v %v", sight, err)
			}
			out, err := Output(dir, 0)
			ok(t, err)
			if read := readLines(out, 1); len(read) != 1 || read[0] != said {
				t.Errorf("read %q, want %q", read, said)
			}
			ok(t, out.Close())

			ok(t, EndOther(t.Context(), dir, c.grace))
			noSurvivor(t, dir)
			_, st, err = Adopt(t.Context(), dir, 2)
			if err != nil || st.Phase != Lost || st.Exit != nil || !strings.Contains(st.Why, fmt.Sprintf("spoke protocol %d", c.number)) ||
				st.SpoolBytes == 0 {
				t.Errorf("after its end: %+v %v", st, err)
			}
			wait.Until(t, "the shim has left its folder", func() bool { held, err := isHeld(dir); return !held && err == nil })
			if sight, err := Look(t.Context(), dir); err != nil || sight.Phase != Lost || sight.Why != st.Why {
				t.Errorf("seen after its end as %+v %v", sight, err)
			}
			ok(t, EndOther(t.Context(), dir, c.grace))
		})
	}
}

// A session that ended under another protocol is lost, whatever its exit record has.
func TestEndedUnderOtherProtocol(t *testing.T) {
	dir := t.TempDir()
	h := start(t, dir, agent(t, "exit", "0"))
	done(t, h)
	wait.Until(t, "the shim is gone", func() bool { held, err := isHeld(dir); return !held && err == nil })
	speaks(t, dir, ownProtocol()+1)
	ok(t, os.WriteFile(filepath.Join(dir, exitFile), []byte(`{"how":"in words"}`), 0o600))
	if _, st, err := Adopt(t.Context(), dir, 2); err != nil || st.Phase != Lost || st.Exit != nil {
		t.Errorf("%+v %v", st, err)
	}
}

// If the record cannot be read, the shim's first answer says which protocol it speaks.
func TestOtherProtocolInAnswer(t *testing.T) {
	dir := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(dir, agentFile), []byte(`{"v":`), 0o600))
	lock, err := openPlain(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE)
	ok(t, err)
	defer lock.Close()
	if free, err := tryLock(lock); err != nil || !free {
		t.Fatal(free, err)
	}
	path, err := pickSocket(dir)
	ok(t, err)
	l, err := net.Listen("unix", path)
	ok(t, err)
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		var o order
		_ = readFrame(conn, frameBytesMax, &o)
		_ = writeFrame(conn, answer{ID: o.ID, Version: ownProtocol() + 1, Fault: &fault{Kind: "word of later"}})
	}()
	_, _, err = Adopt(t.Context(), dir, 2)
	if other := new(OtherProtocol); !errors.As(err, &other) || other.Its != ownProtocol()+1 {
		t.Errorf("adopted: %v", err)
	}
	if err := EndOther(t.Context(), dir, 0); err == nil {
		t.Error("a session without a record was ended")
	}
}
