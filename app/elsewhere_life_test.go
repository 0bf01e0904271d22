package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/read/view"
)

// hostOf is the host on which the step work of T1 is placed.
func (b *bubble) hostOf() string {
	b.t.Helper()
	r, err := b.engine.Runs.RunByID(b.t.Context(), "T1")
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Steps[1].Host
}

func (b *bubble) statusOf() string {
	b.t.Helper()
	r, err := b.engine.Runs.RunByID(b.t.Context(), "T1")
	if err != nil {
		b.t.Fatal(err)
	}
	return string(r.Status)
}

func (b *bubble) hosts() view.Hosts {
	b.t.Helper()
	all, err := b.engine.Status.Hosts(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// until waits; false: the session was asked to end.
func (s *fakeSession) until(finish chan struct{}) bool {
	select {
	case <-finish:
		return true
	case <-s.asked:
		return false
	}
}

func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// TestWorkComesBack lets a step work on another host: its files go there, its work and its output come back, and when the
// task's folder is removed here, the host removes its own.
func TestWorkComesBack(t *testing.T) {
	var finish chan struct{} // of the bubble
	teamBubble(t, host.Restart, func(s *fakeSession) {
		s.say("it works")
		s.until(finish)
		s.say("stop ok")
	}, func(t *testing.T, b *bubble, hosts []*otherHost) {
		finish = make(chan struct{})
		o := hosts[0]
		o.joins()
		b.give("Write the file b")
		o.lives(10 * time.Second)
		if on := b.hostOf(); on != "b" || o.host.startsOf("coder") != 1 || b.host.startsOf("coder") != 0 {
			t.Fatalf("it runs on %q", on)
		}
		o.write("b.txt", "made on b\n")
		close(finish)
		o.lives(10 * time.Second)
		if got := b.file("b.txt"); got != "made on b\n" || b.hostOf() != "" {
			t.Errorf("b.txt is %q, and it is on %q", got, b.hostOf())
		}
		o.disconnects()
		if text := b.output("coder-1"); !strings.Contains(text, "it works") {
			t.Errorf("its output here is %q", text)
		}
		if err := os.RemoveAll(b.tree()); err != nil {
			t.Fatal(err)
		}
		b.after(2 * time.Minute)
		if gone(o.tree()) {
			t.Error("its checkout is gone, while it is away")
		}
		o.connects()
		o.lives(2 * time.Minute)
		if !gone(o.tree()) || !gone(filepath.Join(o.root, ".agents", "runs", "T1")) {
			t.Error("its checkout or the folder of the run is there")
		}
		if left := gitIn(t, o.root, "for-each-ref"); left != "" {
			t.Errorf("refs are left: %s", left)
		}
	})
}

// TestWaitsForAHost checks that a step waits until a host takes it, and that one that is withdrawn waits no longer.
func TestWaitsForAHost(t *testing.T) {
	teamBubble(t, host.Restart, func(s *fakeSession) { s.say("stop ok") }, func(t *testing.T, b *bubble, hosts []*otherHost) {
		b.give("Wait")
		waiting := b.hosts().Waiting
		if len(waiting) != 1 || waiting[0].Run != "T1" || !strings.Contains(waiting[0].Why, "gpu") {
			t.Fatalf("%+v", waiting)
		}
		if _, err := b.engine.Runs.CancelRun(t.Context(), human, "T1", "", ""); err != nil {
			t.Fatal(err)
		}
		b.after(time.Minute)
		if waiting := b.hosts().Waiting; len(waiting) != 0 {
			t.Errorf("it was cancelled, and waits: %+v", waiting)
		}
		b.give("Work")
		if waiting := b.hosts().Waiting; len(waiting) != 1 || waiting[0].Run != "T2" {
			t.Fatalf("%+v", waiting)
		}
		hosts[0].joins()
		hosts[0].lives(20 * time.Second)
		if waiting := b.hosts().Waiting; len(waiting) != 0 || hosts[0].host.startsOf("coder") != 1 {
			t.Errorf("%+v, %d starts", waiting, hosts[0].host.startsOf("coder"))
		}
	})
}

// TestHostIsLost loses the host of a step. The step begins anew on another one, with what came back before; the first host
// keeps what it did after that, and removes the rest when the task is over.
func TestHostIsLost(t *testing.T) {
	var finish chan struct{} // of the bubble
	teamBubble(t, host.Restart, func(s *fakeSession) {
		if s.until(finish) {
			s.say("stop ok")
		}
	}, func(t *testing.T, b *bubble, hosts []*otherHost) {
		finish = make(chan struct{})
		o, c := hosts[0], hosts[1]
		o.joins()
		b.give("Write a file")
		o.lives(10 * time.Second)
		o.write("b.txt", "first\n")
		o.lives(2*time.Minute + 10*time.Second)
		if got := b.file("b.txt"); got != "first\n" {
			t.Fatalf("after two minutes b.txt is %q", got)
		}
		o.write("b.txt", "never fetched\n")
		o.disconnects()
		o.host.killAll() // by the deadline of its shim
		c.joins()
		c.lives(80 * time.Second)
		if on := b.hostOf(); on != "c" || c.host.startsOf("coder") != 1 {
			t.Fatalf("it is on %q: %+v", on, b.hosts())
		}
		close(finish)
		c.lives(10 * time.Second)
		if got := b.file("b.txt"); got != "first\n" {
			t.Errorf("b.txt is %q", got)
		}
		if err := os.RemoveAll(b.tree()); err != nil {
			t.Fatal(err)
		}
		c.lives(2 * time.Minute)
		if !gone(c.tree()) || gone(o.tree()) {
			t.Errorf("gone: on c %t, on b, which is away, %t", gone(c.tree()), gone(o.tree()))
		}
		o.connects()
		o.lives(2 * time.Minute)
		left := gitIn(t, o.root, "for-each-ref", "--format=%(refname)")
		if !gone(o.tree()) || !strings.HasPrefix(left, "refs/fairlead/left/T1/") ||
			gitIn(t, o.root, "show", left+":b.txt") != "never fetched" {
			t.Errorf("gone on b: %t; it keeps %s", gone(o.tree()), left)
		}
	})
}

// TestLeaderStartsAgain starts the leader again while a step works on another host.
func TestLeaderStartsAgain(t *testing.T) {
	var finish chan struct{} // of the bubble
	teamBubble(t, host.Restart, func(s *fakeSession) {
		s.say("it works")
		s.until(finish)
		s.say("stop ok")
	}, func(t *testing.T, b *bubble, hosts []*otherHost) {
		finish = make(chan struct{})
		o := hosts[0]
		o.joins()
		b.give("Write a file")
		o.lives(10 * time.Second)
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		o.write("b.txt", "while it was away\n")
		b.start()
		o.lives(10 * time.Second)
		if on := b.hostOf(); on != "b" {
			t.Errorf("it is on %q", on)
		}
		close(finish)
		o.lives(10 * time.Second)
		if got := b.file("b.txt"); got != "while it was away\n" || o.host.startsOf("coder") != 1 {
			t.Errorf("b.txt is %q after %d starts; it is %s", got, o.host.startsOf("coder"), b.statusOf())
		}
	})
}

// TestLostBeforeTheLeaderStartsAgain starts the leader again after the host of a step was lost for good.
func TestLostBeforeTheLeaderStartsAgain(t *testing.T) {
	teamBubble(t, host.Restart, func(s *fakeSession) { <-s.asked }, func(t *testing.T, b *bubble, hosts []*otherHost) {
		o, c := hosts[0], hosts[1]
		o.joins()
		b.give("Work")
		o.lives(10 * time.Second)
		o.disconnects()
		o.host.killAll()
		for lost := false; !lost; { // the daemon dies as soon as that is in the journal
			b.after(time.Second)
			for _, h := range b.hosts().Hosts {
				lost = lost || h.Name == "b" && h.State == string(host.Lost)
			}
			if h := b.hosts(); len(h.Hosts) == 0 {
				t.Fatal("there are no hosts")
			}
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.start()
		c.joins()
		c.lives(30 * time.Second)
		if on := b.hostOf(); on != "c" || c.host.startsOf("coder") != 1 {
			t.Errorf("it is on %q, which has started %d", on, c.host.startsOf("coder"))
		}
	})
}

// TestWaitsForItsHost loses the host of a step with on_lost: wait. It works on alone, and its result comes when the host is
// back.
func TestWaitsForItsHost(t *testing.T) {
	var finish chan struct{} // of the bubble
	teamBubble(t, host.Wait, func(s *fakeSession) {
		s.until(finish)
		s.say("stop ok")
	}, func(t *testing.T, b *bubble, hosts []*otherHost) {
		finish = make(chan struct{})
		o, c := hosts[0], hosts[1]
		o.joins()
		b.give("Write a file")
		o.lives(10 * time.Second)
		c.joins()
		o.disconnects()
		c.lives(3 * time.Minute)
		if on := b.hostOf(); on != "b" || c.host.startsOf("coder") != 0 {
			t.Errorf("it is on %q", on)
		}
		o.write("b.txt", "alone\n")
		close(finish)
		b.settle()
		o.connects()
		o.lives(30 * time.Second)
		if got := b.file("b.txt"); got != "alone\n" || b.hostOf() != "" {
			t.Errorf("b.txt is %q, and it is on %q, %s", got, b.hostOf(), b.statusOf())
		}
	})
}

// late are the late reports of a host.
func (b *bubble) late(name string) []view.LateReport {
	b.t.Helper()
	for _, h := range b.hosts().Hosts {
		if h.Name == name {
			return h.Late
		}
	}
	return nil
}

// TestWhatALostHostLeft loses the host of a step, which works on alone, and brings it back while its next attempt works on another
// one. What it has printed, reported and changed is fetched once, and moves nothing.
func TestWhatALostHostLeft(t *testing.T) {
	var alone, finish chan struct{} // of the bubble
	teamBubble(t, host.Restart, func(s *fakeSession) {
		s.say("it works")
		if s.id == "coder-1" {
			<-alone
			s.say("alone")
			s.exit(3)
			return
		}
		s.until(finish)
		s.say("stop ok")
	}, func(t *testing.T, b *bubble, hosts []*otherHost) {
		alone, finish = make(chan struct{}), make(chan struct{})
		o, c := hosts[0], hosts[1]
		o.joins()
		b.give("Write a file")
		o.lives(10 * time.Second)
		o.disconnects()
		c.joins()
		c.lives(80 * time.Second)
		if on := b.hostOf(); on != "c" {
			t.Fatalf("it is on %q: %+v", on, b.hosts())
		}
		h := b.hosts().Hosts[1]
		if len(h.Missing) != 1 || h.Missing[0].Session != "coder-1" || h.Missing[0].Run != "T1" || h.Missing[0].Step != "work" ||
			!strings.Contains(h.Why, "coder-1") {
			t.Fatalf("%+v", h)
		}
		c.write("b.txt", "of the next attempt\n")
		o.write("b.txt", "made alone\n")
		report := filepath.Join(".agents", "runs", "T1", "reports", "T1__work.json")
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(o.root, report)), 0o700),
			os.WriteFile(filepath.Join(o.root, report), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
		close(alone)
		b.settle()
		o.connects()
		c.lives(5 * time.Second)
		o.lives(10 * time.Second)
		const ref = "refs/fairlead/late/T1/work/coder-1"
		late := b.late("b")
		if len(late) != 1 || late[0].Ref != ref || late[0].OutputBytes != int64(len("alone\n")) || late[0].Files != 1 ||
			late[0].Lacks != "" || late[0].What != "it ended with exit status 3" || late[0].Run != "T1" || late[0].Step != "work" {
			t.Fatalf("%+v", late)
		}
		if got := gitIn(t, b.conf.Dir, "show", ref+":b.txt"); got != "made alone" {
			t.Errorf("what it wrote is %q", got)
		}
		if text := b.output("coder-1"); !strings.HasSuffix(text, "it works\nalone\n") {
			t.Errorf("its output here is %q", text)
		}
		if gone(filepath.Join(b.cluster.Folder, "late", "T1", "coder-1", report)) || !gone(filepath.Join(b.conf.Dir, report)) {
			t.Error("its report is not where late ones are")
		}
		if b.file("b.txt") != "" || b.hostOf() != "c" || c.host.startsOf("coder") != 1 {
			t.Errorf("it moved something: b.txt is %q, it is on %s", b.file("b.txt"), b.hostOf())
		}
		close(finish)
		c.lives(5 * time.Second)
		o.lives(5 * time.Second)
		if got := b.file("b.txt"); got != "of the next attempt\n" {
			t.Errorf("b.txt is %q", got)
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.start()
		o.lives(10 * time.Second)
		if late := b.late("b"); len(late) != 1 || len(b.hosts().Hosts[1].Missing) > 0 {
			t.Errorf("it is fetched again: %+v", late)
		}
	})
}

// TestLateBeforeItWorksThereAgain lets the next attempt of a step begin on the same host, when that is back: what the lost one left
// is fetched before the files there are replaced. The leader starts again meanwhile.
func TestLateBeforeItWorksThereAgain(t *testing.T) {
	teamBubble(t, host.Restart, func(s *fakeSession) {
		<-s.asked
		s.exit(0)
	}, func(t *testing.T, b *bubble, hosts []*otherHost) {
		o := hosts[0]
		o.joins()
		b.give("Write a file")
		o.lives(10 * time.Second)
		o.write("b.txt", "made alone\n")
		o.disconnects()
		o.host.killAll()
		b.after(2 * time.Minute)
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.start()
		o.slow = make(chan struct{})
		o.connects()
		o.lives(15 * time.Second)
		if late := b.late("b"); len(late) != 0 || b.hostOf() != "b" || o.host.startsOf("coder") != 1 {
			t.Errorf("before it is fetched: %+v, on %q after %d starts", late, b.hostOf(), o.host.startsOf("coder"))
		}
		close(o.slow)
		o.lives(10 * time.Second)
		if late := b.late("b"); len(late) != 1 || late[0].Ref == "" || gitIn(t, b.conf.Dir, "show", late[0].Ref+":b.txt") != "made alone" {
			t.Fatalf("%+v", late)
		}
		o.lives(10 * time.Second)
		if on := b.hostOf(); on != "b" || o.host.startsOf("coder") != 2 || !gone(filepath.Join(o.tree(), "b.txt")) {
			t.Errorf("it is on %q after %d starts, with the file of before: %t", on, o.host.startsOf("coder"),
				!gone(filepath.Join(o.tree(), "b.txt")))
		}
	})
}
