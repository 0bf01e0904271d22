package nemesis

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// TestAskWhenLost loses the host of a step whose agent has on_lost: ask, twice. A person lets it begin elsewhere once. Then the host is
// back before an answer.
func TestAskWhenLost(t *testing.T) {
	w := newWorld(t, "b", "c")
	defer w.show()
	elsewhere := w.taskOf("asker", "Elsewhere")
	n := w.works(elsewhere)
	w.Cut(leader, n.Host)
	cut := now()
	q := w.asked(n)
	w.inTime(n, cut)
	if w.alive(n) {
		t.Errorf("a person is asked about %s, and its process runs", n.Session)
	}
	w.fairlead(leader, "answer", q, "elsewhere")
	if next := w.works(elsewhere, n.Session); next.Host == n.Host {
		t.Errorf("it began on the host that was lost: %+v", next)
	}
	w.Heal()
	w.is(n.Host, "joined")
	if by := w.finish(elsewhere); by == n.Session {
		t.Errorf("the result is that of the session that was lost")
	}

	back := w.taskOf("asker", "Back")
	n = w.works(back)
	w.Cut(leader, n.Host)
	q = w.asked(n)
	w.Heal()
	w.is(n.Host, "joined")
	w.works(back, n.Session)
	if out, err := w.try(leader, "answer", q, "elsewhere"); err == nil {
		t.Errorf("a question that was taken back is answered: %s", out)
	}
	if by := w.finish(back); by == n.Session {
		t.Errorf("the result is that of the session that was lost")
	}
	w.check()
}

// asked waits until a person is asked about a session that was lost, and returns the id of the question.
func (w *world) asked(n note) (id string) {
	w.Helper()
	wait.Until(w, "a person is asked about "+n.Session, func() bool {
		out, _ := w.try(leader, "inbox", "--json")
		var all struct {
			Items []struct {
				Kind     string
				Question struct{ ID, What string }
			}
		}
		_ = json.Unmarshal([]byte(out), &all)
		for _, is := range all.Items {
			if is.Kind == "host_lost" && strings.Contains(is.Question.What, n.Session+",") {
				id = is.Question.ID
			}
		}
		return id != ""
	})
	return id
}
