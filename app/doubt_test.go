package app

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/read/status"
	"github.com/fairlead-dev/fairlead/read/view"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/process/shim"
)

func unsure(a view.AgentView) bool { return a.Certainty == view.CertaintyUnknown && a.Doubt != "" }

func sure(a view.AgentView) bool { return a.Certainty == view.CertaintyKnown && a.Doubt == "" }

// against lists the evidence that contradicts the status.
func against(why view.WhyView) (found []string) {
	for _, piece := range why.Evidence {
		if !piece.Holds {
			found = append(found, piece.What)
		}
	}
	return found
}

func (w *world) why(agent string) view.WhyView {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), waitMax)
	defer cancel()
	why, err := w.engine.Status.Why(ctx, agent)
	if err != nil {
		w.t.Fatal(err)
	}
	return why
}

// shimOf returns the shim of a session.
func (w *world) shimOf(session string) int {
	w.t.Helper()
	proof, err := w.engine.Sessions.Proc(session).Evidence(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return proof.ShimPID
}

// TestStoppedShim checks a stopped shim, which does not answer. Within a second the status is
// unknown and says why; the badge stays. When the shim continues, the status is known again.
func TestStoppedShim(t *testing.T) {
	t.Parallel()
	if status.EvidenceWait >= time.Second { // each status request waits at most this long
		t.Errorf("a shim is given %v to answer", status.EvidenceWait)
	}
	w := newWorld(t, agentYAML(gated), nil)
	w.command("coder", "run_once")
	w.until("coder", "it runs", running)
	shimPID := w.shimOf("coder-1")
	if err := syscall.Kill(shimPID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(shimPID, syscall.SIGCONT)
	shown := w.until("coder", "its status is unknown", unsure)
	if shown.Badge != view.BadgeRunning || !strings.Contains(shown.Doubt, "does not answer") ||
		!strings.Contains(shown.Doubt, "itself lives") {
		t.Errorf("badge %s, doubt %q", shown.Badge, shown.Doubt)
	}
	why := w.why("coder")
	if !strings.Contains(why.Verdict, "coder is UNKNOWN: ") || len(against(why)) != 1 {
		t.Errorf("%q, against it: %q", why.Verdict, against(why))
	}
	if err := syscall.Kill(shimPID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.until("coder", "there is no doubt", sure)
	w.write("go", "")
	w.until("coder", "it rests", idle)
}

// TestDeathBehindAStoppedShim kills an agent while its shim is stopped. How it ended is unknown,
// but the status shows that its process is gone.
func TestDeathBehindAStoppedShim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	w.command("coder", "run_once")
	pid := w.until("coder", "it runs", running).Session.PID
	shimPID := w.shimOf("coder-1")
	if err := errors.Join(syscall.Kill(shimPID, syscall.SIGSTOP), syscall.Kill(pid, syscall.SIGKILL)); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(shimPID, syscall.SIGCONT)
	w.until("coder", "it is seen that its process is gone", func(a view.AgentView) bool {
		return unsure(a) && strings.Contains(a.Doubt, "itself is gone")
	})
	if err := syscall.Kill(shimPID, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if a := w.until("coder", "it rests", idle); !sure(a) {
		t.Errorf("%q", a.Doubt)
	}
}

// TestStoppedAgent checks that a stopped agent does not count as dead. The status shows that it is
// stopped and for how long it was silent, and the agent continues later.
func TestStoppedAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, agentYAML(gated), nil)
	w.command("coder", "run_once")
	pid := w.until("coder", "it runs", running).Session.PID
	said := func() (age int64) {
		for _, piece := range w.why("coder").Evidence {
			if strings.Contains(piece.What, "time of the last one") {
				return piece.AgeMS
			}
		}
		return -1
	}
	w.until("coder", "it has said something", func(view.AgentView) bool { return said() >= 0 })
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	shown := w.until("coder", "it is seen that it was stopped",
		func(a view.AgentView) bool { return strings.Contains(a.Doubt, "stopped by a signal") })
	if shown.Certainty != view.CertaintyKnown || shown.Badge != view.BadgeRunning || shown.EvidenceAgeMS == nil {
		t.Errorf("%+v", shown)
	}
	first := said()
	w.until("coder", "its last word grows older", func(view.AgentView) bool { return said() >= first+200 })
	if why := w.why("coder"); why.Agent.Session == nil || len(against(why)) != 1 {
		t.Errorf("%+v, against it: %q", why.Agent, against(why))
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	w.until("coder", "there is no doubt", sure)
	w.write("go", "")
	w.until("coder", "it rests", idle)
	if s := w.sessions(); len(s) != 1 || s[0].Outcome != "ok" {
		t.Errorf("sessions: %+v", s)
	}
}

// TestContradictions checks that every kind of contradiction makes the status unknown and is listed
// by why.
func TestContradictions(t *testing.T) {
	t.Parallel()
	cases := map[string]func(*sessionhost.Proof) string{
		"another process": func(p *sessionhost.Proof) string {
			p.PID = 4711
			return "as process 1007, and its shim holds process 4711"
		},
		"its number is reused": func(p *sessionhost.Proof) string {
			p.Against = "its shim says that it runs as process 1007, and that process " + sessions.LifeWords[shim.Reused]
			return "belongs to another process"
		},
	}
	for name, lie := range cases {
		t.Run(name, func(t *testing.T) {
			inBubble(t, "coder", func(t *testing.T, b *bubble) {
				b.start()
				b.command("coder", "continuous")
				b.settle()
				e := b.engine
				real := e.Sessions.Proc("coder-1")
				var want string
				e.Sessions.SetProc("coder-1", liar{real, func(p *sessionhost.Proof) { want = lie(p) }})
				shown := b.view("coder")
				if !unsure(shown) || !strings.Contains(shown.Doubt, want) || shown.Badge != view.BadgeRunning {
					t.Errorf("%s, doubt %q", shown.Certainty, shown.Doubt)
				}
				why, err := e.Status.Why(t.Context(), "coder")
				if err != nil || len(against(why)) != 1 || !strings.Contains(why.Verdict, "UNKNOWN: ") {
					t.Errorf("%q, against it: %q, %v", why.Verdict, against(why), err)
				}
				e.Sessions.SetProc("coder-1", real)
				if view := b.view("coder"); !sure(view) {
					t.Errorf("doubt %q", view.Doubt)
				}
			})
		})
	}
}

type liar struct {
	sessionhost.Process
	lie func(*sessionhost.Proof)
}

func (l liar) Evidence(ctx context.Context) (sessionhost.Proof, error) {
	p, err := l.Process.Evidence(ctx)
	l.lie(&p)
	return p, err
}

// TestSilentSinceTheStart checks that it is unknown whether an opened session was started while its
// shim does not answer.
func TestSilentSinceTheStart(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		playUntilCrash(b, "never", situation{first: "run_once"})
		b.host.adopts.set(func(string) error { return errors.New("it hangs") })
		b.start()
		if view := b.view("coder"); !unsure(view) || !strings.Contains(view.Doubt, "it hangs") {
			t.Errorf("%s, doubt %q", view.Certainty, view.Doubt)
		}
		b.host.adopts.set(nil)
		b.after(time.Minute)
		if view := b.view("coder"); !sure(view) || view.Session == nil || view.Session.Phase != "running" {
			t.Errorf("doubt %q, session %+v", view.Doubt, view.Session)
		}
	})
}

// TestFileSaysOtherwise checks a file that cannot be corrected and contradicts the status.
func TestFileSaysOtherwise(t *testing.T) {
	t.Parallel()
	inBubble(t, "coder", func(t *testing.T, b *bubble) {
		b.arrange = func(f *fakeFiles) {
			f.writing.set(func(string) error { return errors.New("the disk is full") })
		}
		b.start()
		b.command("coder", "continuous")
		b.disk.writeDesired("coder", "continuous", "", time.Now())
		b.settle()
		shown := b.view("coder")
		if !unsure(shown) || !strings.Contains(shown.Doubt, "says current pause, and the journal continuous") ||
			shown.Badge != view.BadgeRunning {
			t.Errorf("%s %s, doubt %q", shown.Badge, shown.Certainty, shown.Doubt)
		}
		b.files.writing.set(nil)
		b.after(time.Minute)
		if view := b.view("coder"); !sure(view) {
			t.Errorf("doubt %q", view.Doubt)
		}
	})
}
