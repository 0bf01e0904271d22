package journal_test

import (
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/engine/journal"
)

// TestCanonical pins the format: if this fails, every journal ever written has become unreadable.
func TestCanonical(t *testing.T) {
	c := journal.Change{
		Seq: 2, Version: 1, Time: time.Unix(0, -1), Machine: "control", Entity: "control/a", Row: "C1", From: "", To: "resting",
		Trigger: "started", Actor: change.Actor{Kind: "engine", ID: "loop"}, Data: []byte(`{}`), Cause: 1,
	}
	const want = "01" + "0000000000000002" + "0000000000000001" + "ffffffffffffffff" + "0000000000000001" +
		"00000007" + "636f6e74726f6c" + "00000009" + "636f6e74726f6c2f61" + "00000002" + "4331" + "00000000" +
		"00000007" + "72657374696e67" + "00000007" + "73746172746564" + "00000006" + "656e67696e65" + "00000004" + "6c6f6f70" +
		"00000002" + "7b7d"
	if got := hex.EncodeToString(c.AppendCanonical(nil)); got != want {
		t.Errorf("canonical bytes are\n%s, want\n%s", got, want)
	}
	if a, b := c.Sum(journal.Hash{}), c.Sum(journal.Hash{1}); a == b || a.IsZero() {
		t.Error("the hash before does not count")
	}
}

func TestHashText(t *testing.T) {
	h := (&journal.Change{Entity: "a/b", Time: time.Unix(0, 0)}).Sum(journal.Hash{})
	b, err := json.Marshal(h)
	if err != nil || len(b) != 66 {
		t.Fatal(string(b), err)
	}
	var back journal.Hash
	if err := json.Unmarshal(b, &back); err != nil || back != h {
		t.Errorf("%s came back as %s (%v)", h, back, err)
	}
	for _, s := range []string{``, `00`, h.String() + `00`, `zz` + h.String()[2:]} {
		was := back
		if err := back.UnmarshalText([]byte(s)); err == nil || back != was {
			t.Errorf("%q was taken", s)
		}
	}
}

// FuzzCanonical moves the border between two neighbouring fields: other changes must
// have other bytes.
func FuzzCanonical(f *testing.F) {
	f.Add("control", "C1", "resting", "continuous", []byte(`{"a":1}`), "contro", "lC1", "resting", "continuous", []byte(`{"a":1}`))
	f.Add("", "", "", "", []byte(nil), "", "", "", "\x00", []byte(nil))
	f.Add("a", "", "", "", []byte("b"), "", "a", "", "", []byte("b"))
	f.Fuzz(func(t *testing.T, m1, r1, f1, t1 string, d1 []byte, m2, r2, f2, t2 string, d2 []byte) {
		a := journal.Change{Time: time.Unix(0, 0), Machine: m1, Row: r1, From: f1, To: t1, Data: d1}
		b := journal.Change{Time: time.Unix(0, 0), Machine: m2, Row: r2, From: f2, To: t2, Data: d2}
		same := m1 == m2 && r1 == r2 && f1 == f2 && t1 == t2 && string(d1) == string(d2)
		if got := string(a.AppendCanonical(nil)) == string(b.AppendCanonical(nil)); got != same {
			t.Errorf("%+v and %+v: same bytes %v, same change %v", a, b, got, same)
		}
	})
}
