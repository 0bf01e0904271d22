package marker

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// leadsOnly are the markers of a lead's session.
var leadsOnly = []Kind{AgentStatus, AgentRegistered}

// leads are streams of a lead's session, and the markers that a scanner for leadsOnly finds in them.
var leads = []struct{ name, in, want string }{
	{
		"a summons",
		"I wrote to them.\n[AGENT_REGISTERED] {\"name\":\"Lyra\",\"gridPosition\":0}\n[Lyra]: Hello.\n[AGENT_REGISTERED] {\"name\":\"Kael\",\"gridPosition\":1}\n[Kael]: Hm.\n[AGENT_STATUS] {\"agents\":[{\"name\":\"Lyra\",\"status\":\"alive\",\"gridPosition\":0}]}\n",
		"I wrote to them.\n‹agent_registered@17 {\"name\":\"Lyra\",\"gridPosition\":0}›[Lyra]: Hello.\n‹agent_registered@84 {\"name\":\"Kael\",\"gridPosition\":1}›[Kael]: Hm.\n‹agent_status@148 {\"agents\":[{\"name\":\"Lyra\",\"status\":\"alive\",\"gridPosition\":0}]}›",
	},
	{
		"over many lines, and closed in the last",
		"[AGENT_STATUS]\n{\n  \"agents\": [\n    {\n      \"name\": \"Lyra\",\n      \"status\": \"alive\"\n    }\n  ]\n}\nDone.\n",
		"‹agent_status@0 {\n  \"agents\": [\n    {\n      \"name\": \"Lyra\",\n      \"status\": \"alive\"\n    }\n  ]\n}›Done.\n",
	},
	{
		"a soul that quotes",
		`[AGENT_REGISTERED] {"individuationArtifact":"I am \"Ræ\".\nThey said [AGENT_STATUS] {\"agents\":[]}\u0000 } ] \\"}` +
			"\nWelcome, Ræ 🜚.\n",
		`‹agent_registered@0 {"individuationArtifact":"I am \"Ræ\".\nThey said [AGENT_STATUS] {\"agents\":[]}\u0000 } ] \\"}›` +
			"Welcome, Ræ 🜚.\n",
	},
	{
		"several in one line", `è[AGENT_STATUS]{"agents":[]} [AGENT_STATUS] {"agents":[]}[AGENT_REGISTERED] {}` + "\r\n.",
		`è‹agent_status@2 {"agents":[]}›‹agent_status@30 {"agents":[]}›‹agent_registered@58 {}›` + "\n.",
	},
	{
		"broken, then whole", "[AGENT_STATUS] {\"agents\":[{'name'}]}\n[AGENT_STATUS] {\"agents\":[]}\n",
		"‹agent_status@0 fault: the JSON of [AGENT_STATUS] breaks at its byte 13: '\\'' where a name in quotes or } should be›'name'}]}\n‹agent_status@37 {\"agents\":[]}›",
	},
	{
		"the words of a turn and a report are conversation",
		"I pass. TURN_PASS  \nTURN_COMPLETE\n\n<<<RUN_REPORT_JSON {\"a\":1} RUN_REPORT_JSON>>>  \nTURN_WAIT",
		"I pass. TURN_PASS  \nTURN_COMPLETE\n\n<<<RUN_REPORT_JSON {\"a\":1} RUN_REPORT_JSON>>>  \nTURN_WAIT",
	},
	{
		"a marker in a report", "<<<RUN_REPORT_JSON\n[AGENT_STATUS] {}\nRUN_REPORT_JSON>>>\n",
		"<<<RUN_REPORT_JSON\n‹agent_status@19 {}›RUN_REPORT_JSON>>>\n",
	},
	{"bytes that are no text", "\xff\xfe[AGENT_STATUS] {\"a\":\"\xff\"}\xc3", "\xff\xfe‹agent_status@2 {\"a\":\"\xff\"}›\xc3"},
}

func TestLeadStreams(t *testing.T) {
	for _, c := range leads {
		t.Run(c.name, func(t *testing.T) {
			scan := func(parts ...string) string {
				s := Scanner{Only: leadsOnly}
				var out []Piece
				written := int64(0)
				for _, part := range parts {
					out = append(out, s.Write([]byte(part))...)
					written += int64(len(part))
					if s.offset+int64(s.Pending()) != written {
						t.Fatalf("%d bytes given back and %d held are not %d", s.offset, s.Pending(), written)
					}
				}
				return told(append(out, s.Flush()...))
			}
			if got := scan(c.in); got != c.want {
				t.Fatalf("got\n%q\nwant\n%q", got, c.want)
			}
			for i := range c.in {
				for j := i; j < len(c.in); j++ {
					if got := scan(c.in[:i], c.in[i:j], c.in[j:]); got != c.want {
						t.Fatalf("cut at %d and %d: got\n%q\nwant\n%q", i, j, got, c.want)
					}
				}
			}
			if got := scan(strings.Split(c.in, "")...); got != c.want {
				t.Errorf("letter by letter: got\n%q\nwant\n%q", got, c.want)
			}
			for i := range c.in {
				again(t, []byte(c.in), i)
			}
		})
	}
}

// again checks Pending: a reader that dies in the stream and continues at a position where nothing
// was pending finds the same markers, for every line.
func again(t *testing.T, in []byte, cut int) {
	t.Helper()
	before := Scanner{Only: leadsOnly}
	heard := before.Write(in[:cut])
	from := cut - before.Pending()
	if from > 0 && in[from-1] != '\n' {
		return // what stood before it in its line is forgotten
	}
	after, whole := Scanner{Only: leadsOnly}, Scanner{Only: leadsOnly}
	for _, p := range slices.Concat(after.Write(in[from:]), after.Flush()) {
		if p.Marker != nil {
			p.Marker.Offset += int64(from)
		}
		heard = append(heard, p)
	}
	if got, want := told(heard), told(slices.Concat(whole.Write(in), whole.Flush())); got != want {
		t.Fatalf("dead at %d, read again from %d: heard\n%q\nwant\n%q", cut, from, got, want)
	}
}

// A soul of a megabyte comes through whole, in whatever pieces, and costs no more than its length.
func TestLargeSoul(t *testing.T) {
	head, tail := `[AGENT_REGISTERED] {"individuationArtifact":"`, `"}`
	soul := strings.Repeat(`I am … \"who\" I am. [AGENT_STATUS] {} é🜚\n`, jsonBytesMax)[:jsonBytesMax-200]
	soul = strings.ToValidUTF8(soul[:strings.LastIndexByte(soul, '.')], "")
	in := "Listen.\n" + head + soul + tail + "\nThat was it.\n"
	want := "Listen.\n‹agent_registered@8 " + head[len("[AGENT_REGISTERED] "):] + soul + tail + "›That was it.\n"
	for _, size := range []int{7, 4096, 65537, len(in)} {
		s := Scanner{Only: leadsOnly}
		var out []Piece
		for part := range slices.Chunk([]byte(in), size) {
			out = append(out, s.Write(part)...)
		}
		if got := told(append(out, s.Flush()...)); got != want {
			t.Errorf("in pieces of %d: %d bytes of %d, %.200q", size, len(got), len(want), got)
		}
	}
}

func TestPending(t *testing.T) {
	s := Scanner{Only: leadsOnly}
	for _, c := range []struct {
		part string
		held int
	}{
		{"Hello.\n", 0},
		{"[AGE", 4},
		{"NT_", 7},
		{"x", 0},
		{"\n[AGENT_STATUS]", 14},
		{" {\"agents\":[", 26},
		{"]}", 0},
		{"  ", 0},
		{"\nTURN_CO", 0},
	} {
		s.Write([]byte(c.part))
		if s.Pending() != c.held {
			t.Errorf("after %q it holds %d bytes back, want %d", c.part, s.Pending(), c.held)
		}
	}
}

// FuzzLead: however a lead's stream is cut, the same comes out, every byte is accounted for, and
// who reads again from where nothing was held back hears the same.
func FuzzLead(f *testing.F) {
	for _, c := range leads {
		f.Add([]byte(c.in), uint16(9), uint16(30))
	}
	for _, c := range streams {
		f.Add([]byte(c.in), uint16(7), uint16(20))
	}
	f.Fuzz(func(t *testing.T, in []byte, a, b uint16) {
		i := int(a) % (len(in) + 1)
		j := i + int(b)%(len(in)-i+1)
		whole, cut := Scanner{Only: leadsOnly}, Scanner{Only: leadsOnly}
		want := told(slices.Concat(whole.Write(in), whole.Flush()))
		var out []Piece
		written := 0
		for _, part := range [][]byte{in[:i], in[i:j], in[j:]} {
			out = append(out, cut.Write(part)...)
			if written += len(part); cut.offset+int64(cut.Pending()) != int64(written) {
				t.Fatalf("%d given back and %d held, of %d", cut.offset, cut.Pending(), written)
			}
		}
		if got := told(append(out, cut.Flush()...)); got != want {
			t.Fatalf("cut at %d and %d: got\n%q\nwant\n%q", i, j, got, want)
		}
		again(t, in, i)
		again(t, in, j)
		if !bytes.Contains(in, []byte("[AGENT_")) && want != string(in) {
			t.Fatalf("%q became %q", in, want)
		}
	})
}

func BenchmarkLead(b *testing.B) {
	text := []byte(strings.Repeat("So I went and looked, and [as I feared] Lyra was asleep. TURN_COMPLETE\n", 1000))
	for _, name := range []string{"all", "lead"} {
		b.Run(fmt.Sprint("heeds=", name), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s := Scanner{}
				if name == "lead" {
					s.Only = leadsOnly
				}
				for part := range slices.Chunk(text, 512) {
					s.Write(part)
				}
				s.Flush()
			}
		})
	}
}

// D3, D5: what an agent in charge says of another one is found where it is listened for.
func TestDelegate(t *testing.T) {
	s := Scanner{Only: []Kind{Delegate}}
	var found []*Marker
	text := "I need help.\n[DELEGATE]\n{\"to\": \"critic\",\n \"task\": \"read [DELEGATE] {}\"}\nTURN_COMPLETE [DELEGATE] none\n[DELEGATE] {"
	for _, piece := range append(s.Write([]byte(text)), s.Flush()...) {
		if piece.Marker != nil {
			found = append(found, piece.Marker)
		}
	}
	if len(found) != 2 || found[0].Fault != "" || string(found[0].JSON) != "{\"to\": \"critic\",\n \"task\": \"read [DELEGATE] {}\"}" ||
		found[1].Fault == "" {
		t.Errorf("%d found: %+v", len(found), found)
	}
}
