package table

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type (
	state string
	event string
	act   string
)

// door is a small machine with every feature: a row that keeps its state, two rows between the same
// states, a state that is only a target, acts, reasons, and ids whose alphabetical order is wrong.
var door = Table[state, event, act]{
	"open": {
		"pushed": {ID: "D2", To: "shut", Do: Do[act]("squeak", "latch")},
		"pulled": {ID: "D10", To: "open", Why: "it opens no wider"},
		"kicked": {ID: "D3", To: "shut", Do: Do[act]("bang")},
	},
	"shut": {
		"pulled": {ID: "D1", To: "open"},
		"razed":  {ID: "E1", To: "gone"},
	},
}

func TestLook(t *testing.T) {
	rule, err := door.Look("the door", "open", "pushed")
	if err != nil || rule.ID != "D2" || rule.To != "shut" || !slices.Equal(rule.Do, []act{"squeak", "latch"}) {
		t.Fatalf("got %+v, %v", rule, err)
	}
}

// SPEC X4: a refusal says what was asked, what the state is, which row forbids it, and what would be allowed.
func TestRefusalsExplainThemselves(t *testing.T) {
	_, err := door.Look("the door", "shut", "pushed")
	var refusal *Refusal
	if !errors.As(err, &refusal) {
		t.Fatalf("got %v, want a refusal", err)
	}
	want := &Refusal{Subject: "the door", Event: "pushed", State: "shut", Takes: []string{"pulled", "razed"}}
	if diff := cmp.Diff(want, refusal); diff != "" {
		t.Error(diff)
	}
	_, noState := door.Look("the door", "ajar", "pushed")
	for _, c := range []struct {
		err  error
		want string
	}{
		{err, "the door: cannot take pushed while shut (takes pulled, razed)"},
		{noState, "the door: cannot take pushed while ajar"},
		{
			&Refusal{Subject: "the door", Event: "pulled", State: "shut", Row: "D7", Reason: "the bolt is on", Takes: []string{"unbolted"}},
			"the door: cannot take pulled while shut: the bolt is on [D7] (takes unbolted)",
		},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestStatesAndEvents(t *testing.T) {
	if got := door.States(); !slices.Equal(got, []state{"gone", "open", "shut"}) {
		t.Errorf("states: %v", got)
	}
	if got := door.Events(); !slices.Equal(got, []event{"kicked", "pulled", "pushed", "razed"}) {
		t.Errorf("events: %v", got)
	}
}

func TestRowsComeInTheOrderOfTheirNumbers(t *testing.T) {
	var ids []string
	for _, row := range door.Rows() {
		ids = append(ids, row.ID)
		if row.Do == nil {
			t.Errorf("%s: the acts are null in JSON, not []", row.ID)
		}
	}
	if want := []string{"D1", "D2", "D3", "D10", "E1"}; !slices.Equal(ids, want) {
		t.Errorf("got %v, want %v", ids, want)
	}
	if got, want := door.Rows()[1],
		(Row{ID: "D2", From: "open", On: "pushed", To: "shut", Do: []string{"squeak", "latch"}}); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestMatrixShowsEveryPair(t *testing.T) {
	const want = `kicked
  gone           .
  open           -> shut           D3   bang
  shut           .
pulled
  gone           .
  open           -> open           D10
  shut           -> open           D1
pushed
  gone           .
  open           -> shut           D2   squeak latch
  shut           .
razed
  gone           .
  open           .
  shut           -> gone           E1
`
	if diff := cmp.Diff(want, door.Matrix()); diff != "" {
		t.Error(diff)
	}
}

// An arrow of a Mermaid state diagram.
var mermaidArrow = regexp.MustCompile(`^    (\w+) --> (\w+): (\w+ \w+)(<br/>\w+ \w+)*$`)

func TestMermaidHasEveryRowOnce(t *testing.T) {
	lines := strings.Split(strings.TrimSuffix(door.Mermaid(), "\n"), "\n")
	if lines[0] != "stateDiagram-v2" {
		t.Errorf("the diagram begins with %q", lines[0])
	}
	rows := 0
	arrows := map[string]bool{}
	for _, line := range lines[1:] {
		m := mermaidArrow.FindStringSubmatch(line)
		if m == nil {
			t.Errorf("not an arrow: %q", line)
			continue
		}
		if arrow := m[1] + " " + m[2]; arrows[arrow] {
			t.Errorf("two arrows from %s", arrow)
		} else {
			arrows[arrow] = true
		}
		rows += strings.Count(line, "<br/>") + 1
	}
	if want := len(door.Rows()); rows != want {
		t.Errorf("the diagram has %d rows, want %d", rows, want)
	}
}

// The same table always produces the same text, because golden files and documents are compared
// with it.
func TestPrintsTheSameEveryTime(t *testing.T) {
	matrix, mermaid, rows := door.Matrix(), door.Mermaid(), door.Rows()
	for range 20 {
		if door.Matrix() != matrix || door.Mermaid() != mermaid || !cmp.Equal(door.Rows(), rows) {
			t.Fatal("two calls return different text")
		}
	}
}

// FuzzTable builds a table from bytes. Look must accept exactly the rows that Rows lists, and
// Matrix and Mermaid must agree with it.
func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 1, 2, 1, 1, 0, 2, 0, 1})
	f.Add([]byte{})
	f.Add([]byte{7, 7, 7, 7, 6, 5})
	names := []string{"red", "green", "blue", "dim", "off", "on", "hot", "cold"}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		table := Table[state, event, act]{}
		for i := 0; i+2 < len(bytes); i += 3 {
			from, on, to := state(names[bytes[i]%8]), event(names[bytes[i+1]%8]), state(names[bytes[i+2]%8])
			if table[from] == nil {
				table[from] = map[event]Rule[state, act]{}
			}
			table[from][on] = Rule[state, act]{ID: "R" + string('0'+rune(i%10)), To: to}
		}
		rows := table.Rows()
		for _, row := range rows {
			if rule, err := table.Look("it", state(row.From), event(row.On)); err != nil || string(rule.To) != row.To {
				t.Errorf("%+v is listed but refused: %v", row, err)
			}
		}
		taken := 0
		for _, from := range names {
			for _, on := range names {
				if _, err := table.Look("it", state(from), event(on)); err == nil {
					taken++
				} else if len(err.Error()) == 0 {
					t.Error("a refusal without text")
				}
			}
		}
		if taken != len(rows) {
			t.Errorf("%d pairs are accepted, but %d rows are listed", taken, len(rows))
		}
		if got := strings.Count(table.Matrix(), "->"); got != len(rows) {
			t.Errorf("the matrix shows %d rows of %d", got, len(rows))
		}
		if got := strings.Count(table.Mermaid(), "-->"); got > len(rows) || (got == 0) != (len(rows) == 0) {
			t.Errorf("the diagram has %d arrows for %d rows", got, len(rows))
		}
	})
}
