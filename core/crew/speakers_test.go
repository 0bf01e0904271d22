package crew

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/change"
)

func knowsTeam(name string) bool {
	return slices.Contains([]string{"Lyra", "Kael", "Ann of the North", "a]b", "Zoë"}, name)
}

func TestSpeakers(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []Passage
	}{
		{"nothing", "", nil},
		{"nothing but space", " \n\n\t\n", nil},
		{"the lead alone", "Good morning.", []Passage{{"julian", "Good morning."}}},
		{"somebody", "[Lyra]: hello", []Passage{{"Lyra", "hello"}}},
		{
			"several speakers", "I ask them.\n[Lyra]: yes\n[Kael]: no\n[julian]: So be it.",
			[]Passage{{"julian", "I ask them."}, {"Lyra", "yes"}, {"Kael", "no"}, {"julian", "So be it."}},
		},
		{"several lines of one speaker", "[Lyra]: one\ntwo\n\nthree\n", []Passage{{"Lyra", "one\ntwo\n\nthree"}}},
		{"the same twice", "[Lyra]: one\n[Lyra]: two", []Passage{{"Lyra", "one"}, {"Lyra", "two"}}},
		{"an unknown name", "[Nadir]: hello", []Passage{{"julian", "[Nadir]: hello"}}},
		{"in the middle of a line", "she said [Lyra]: hello", []Passage{{"julian", "she said [Lyra]: hello"}}},
		{"after a space", " [Lyra]: hello", []Passage{{"julian", " [Lyra]: hello"}}},
		{"without a colon", "[Lyra] hello", []Passage{{"julian", "[Lyra] hello"}}},
		{"nobody", "[]: hello", []Passage{{"julian", "[]: hello"}}},
		{"without text", "[Lyra]:\n[Kael]: ", nil},
		{"without a space", "[Lyra]:hello", []Passage{{"Lyra", "hello"}}},
		{"two spaces", "[Lyra]:  hello", []Passage{{"Lyra", " hello"}}},
		{"text on the next line", "[Lyra]:\nhello", []Passage{{"Lyra", "hello"}}},
		{"a name of several words", "[Ann of the North]: aye", []Passage{{"Ann of the North", "aye"}}},
		{"a name with other characters than ASCII", "[Zoë]: oui", []Passage{{"Zoë", "oui"}}},
		{"a bracket in a name", "[a]b]: hello", []Passage{{"a]b", "hello"}}},
		{"a bracket in the text", "[Lyra]: see [1]: there", []Passage{{"Lyra", "see [1]: there"}}},
		{"CRLF line endings", "[Lyra]: one\r\n[Kael]: two\r\n", []Passage{{"Lyra", "one"}, {"Kael", "two"}}},
		{"names are case-sensitive", "[lyra]: hello", []Passage{{"julian", "[lyra]: hello"}}},
		{"indentation is kept", "[Lyra]: a list\n  - one", []Passage{{"Lyra", "a list\n  - one"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, Speakers(c.text, "julian", knowsTeam)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzSpeakers checks arbitrary text of a lead: only members of the crew are speakers, every part
// of the text is attributed once and in order, and parsing the rendered parts again gives the same
// result.
func FuzzSpeakers(f *testing.F) {
	for _, seed := range []string{
		"", "\n", "Good morning.", "[Lyra]: hello\n[Kael]: hello", "[Lyra]:", "[]:", "[[Lyra]]: x", "a\n[julian]: b\r\n[Zoë]: c\x00\xff",
		"[a]b]: x\n\n[Lyra]:  y \n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		said := Speakers(text, "julian", knowsTeam)
		rest := text
		for _, p := range said {
			if p.Speaker != "julian" && !knowsTeam(p.Speaker) {
				t.Fatalf("the speaker %q is not a member", p.Speaker)
			}
			i := strings.Index(rest, p.Text)
			if strings.TrimSpace(p.Text) == "" || i < 0 {
				t.Fatalf("%s says %q, which is not in %q", p.Speaker, p.Text, rest)
			}
			rest = rest[i+len(p.Text):]
		}
		if utf8.ValidString(text) {
			for _, p := range said {
				if !utf8.ValidString(p.Text) {
					t.Fatalf("%q is cut in the middle of a character", p.Text)
				}
			}
		}
		aloud := ""
		for _, p := range said {
			aloud += "[" + p.Speaker + "]: " + p.Text + "\n"
		}
		if again := Speakers(aloud, "julian", knowsTeam); !slices.Equal(again, said) && !strings.Contains(text, "]:\n") {
			t.Fatalf("parsing the rendered passages gives another result:\n%q\n%q", said, again)
		}
	})
}

// TestSpeakersInManyTurns checks that a lead whose members speak one word at a time does not cause
// a change for each word, and that no word is lost.
func TestSpeakersInManyTurns(t *testing.T) {
	c := aCrew(t, 2)
	must(t, c, LeadBegan{Session: "julian-1", UUID: "u-1"}, Now{})
	for seat, name := range []string{"Lyra", "Kael"} {
		must(t, c, Registered{Session: "julian-1", Identity: Identity{Name: name, Seat: seat}}, Now{})
	}
	for _, turns := range []int{passagesMax / 2, passagesMax} {
		var text strings.Builder
		for i := range turns {
			fmt.Fprintf(&text, "[Lyra]: a%d\n[Kael]: b%d\n", i, i)
		}
		changes, err := decide(t, c, Spoke{Session: "julian-1", Text: text.String()}, Now{})
		if err != nil {
			t.Fatal(err)
		}
		words := 0
		var all strings.Builder
		for _, ch := range changes {
			if said := change.As[Body](ch.Body).Words; said != nil {
				words++
				all.WriteString(said.Text + "\n")
			}
		}
		if words > passagesMax {
			t.Errorf("%d turns cause %d changes", 2*turns, words)
		}
		for i := range turns {
			if !strings.Contains(all.String(), fmt.Sprintf("a%d\n", i)) || !strings.Contains(all.String(), fmt.Sprintf("b%d\n", i)) {
				t.Errorf("turn %d of %d is lost", i, turns)
				break
			}
		}
	}
}
