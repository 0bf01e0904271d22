package marker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// told is a stream taken apart, written so that a person can read it: text as it is, a marker
// in ‹ ›.
func told(pieces []Piece) string {
	var b strings.Builder
	for _, p := range pieces {
		switch m := p.Marker; {
		case m == nil:
			b.Write(p.Text)
		case m.Fault != "":
			fmt.Fprintf(&b, "‹%s@%d fault: %s›", m.Kind, m.Offset, m.Fault)
		default:
			fmt.Fprintf(&b, "‹%s@%d %s›", m.Kind, m.Offset, m.JSON)
		}
	}
	return b.String()
}

// scan feeds a stream in the given parts.
func scan(parts ...string) []Piece {
	var s Scanner
	var out []Piece
	for _, part := range parts {
		out = append(out, s.Write([]byte(part))...)
	}
	return append(out, s.Flush()...)
}

var streams = []struct{ name, in, want string }{
	{"nothing", "", ""},
	{"only words", "Good morning.\nHow are you?", "Good morning.\nHow are you?"},
	{
		"the seed's status",
		"Here we are.\n[AGENT_STATUS] {\"agents\":[{\"name\":\"Lyra\",\"status\":\"alive\",\"gridPosition\":0}]}\nShall we?\n",
		"Here we are.\n‹agent_status@13 {\"agents\":[{\"name\":\"Lyra\",\"status\":\"alive\",\"gridPosition\":0}]}›Shall we?\n",
	},
	{"nobody is here", `[AGENT_STATUS] {"agents":[]}`, `‹agent_status@0 {"agents":[]}›`},
	{
		"several in one block", "[AGENT_REGISTERED] {\"name\":\"Kael\"}[AGENT_STATUS]{\"agents\":[]}\n[AGENT_STATUS]\t{}\nso",
		"‹agent_registered@0 {\"name\":\"Kael\"}›‹agent_status@34 {\"agents\":[]}›‹agent_status@62 {}›so",
	},
	{
		"over several lines", "a\n  [AGENT_REGISTERED]\n{\n  \"name\": \"Mo}\\\"n\",\n  \"faceVariant\": {\"eyes\": null}\n}  \nb",
		"a\n  ‹agent_registered@4 {\n  \"name\": \"Mo}\\\"n\",\n  \"faceVariant\": {\"eyes\": null}\n}›b",
	},
	{"text before and after on its line", "now [AGENT_STATUS] {} and so on\n", "now ‹agent_status@4 {}›and so on\n"},
	{"text before on its line", "now [AGENT_STATUS] {}\nnext", "now ‹agent_status@4 {}›\nnext"},
	{
		"spoken of", "Emit [AGENT_STATUS] when you are done, or `TURN_COMPLETE`.\n",
		"Emit [AGENT_STATUS] when you are done, or `TURN_COMPLETE`.\n",
	},
	{"without an object", "[AGENT_STATUS] words\n", "‹agent_status@0 fault: no JSON object follows [AGENT_STATUS]›words\n"},
	{"without anything", "[AGENT_STATUS]", "‹agent_status@0 fault: no JSON object follows [AGENT_STATUS]›"},
	{"a list instead", "[AGENT_STATUS] []\n", "‹agent_status@0 fault: no JSON object follows [AGENT_STATUS]›[]\n"},
	{
		"never closed", "[AGENT_STATUS] {\"agents\":[\nI am done.\n[AGENT_STATUS] {\"agents\":[]}\n",
		"‹agent_status@0 fault: the JSON of [AGENT_STATUS] breaks at its byte 13: 'I' where a value should be›I am done.\n‹agent_status@38 {\"agents\":[]}›",
	},
	{
		"begun again", "[AGENT_STATUS] {\"agents\":[ [AGENT_STATUS] {\"agents\":[]}\n",
		"‹agent_status@0 fault: the JSON of [AGENT_STATUS] breaks at its byte 14: 'A' where a value should be›‹agent_status@27 {\"agents\":[]}›",
	},
	{
		"a string that is not closed", "[AGENT_REGISTERED] {\"name\":\"Ly\n[AGENT_STATUS] {}\n",
		"‹agent_registered@0 fault: the JSON of [AGENT_REGISTERED] breaks at its byte 12: a line ends within a string›‹agent_status@31 {}›",
	},
	{"ended within", `[AGENT_STATUS] {"agents":[`, "‹agent_status@0 fault: the message ended within the JSON of [AGENT_STATUS]›"},
	{"a delegation, where nobody asked for one", `[DELEGATE] {"to":"a"}`, `[DELEGATE] {"to":"a"}`},
	{"almost a marker", "[AGENT_STATU] {} [AGENT_ <<<RUN_REPORT <<", "[AGENT_STATU] {} [AGENT_ <<<RUN_REPORT <<"},
	{
		"a marker in a marker's text", `[AGENT_REGISTERED] {"individuationArtifact":"I said [AGENT_STATUS] {}"}`,
		`‹agent_registered@0 {"individuationArtifact":"I said [AGENT_STATUS] {}"}›`,
	},

	{"the turn's end", "All good.\nTURN_COMPLETE\n", "All good.\n‹turn_complete@10 ›"},
	{"at the end of a line", "All good. TURN_COMPLETE  \r\nmore", "All good. ‹turn_complete@10 ›\nmore"},
	{"at the end of the message", "TURN_PASS", "‹turn_pass@0 ›"},
	{"waits", "I wait for Bo.\n  TURN_WAIT\n", "I wait for Bo.\n  ‹turn_wait@17 ›"},
	{
		"not the last word", "TURN_COMPLETE is what I say then\nTURN_COMPLETED\nNO_TURN_COMPLETE\n",
		"TURN_COMPLETE is what I say then\nTURN_COMPLETED\nNO_TURN_COMPLETE\n",
	},
	{"far from the line's end", "TURN_COMPLETE" + strings.Repeat(" ", 80) + "\n", "TURN_COMPLETE" + strings.Repeat(" ", 80) + "\n"},

	{
		"a report", "done\n<<<RUN_REPORT_JSON\n{\"status\": \"ok\"}\nRUN_REPORT_JSON>>>\nbye\n",
		"done\n‹run_report@5 {\"status\": \"ok\"}›bye\n",
	},
	{"a report in a line", "<<<RUN_REPORT_JSON{}RUN_REPORT_JSON>>>", "‹run_report@0 {}›"},
	{"an empty report", "<<<RUN_REPORT_JSON \n RUN_REPORT_JSON>>>", "‹run_report@0 fault: nothing is between the two tags of the report›"},
	{
		"a report that is no JSON", "<<<RUN_REPORT_JSON\n<your report>\nRUN_REPORT_JSON>>>\n",
		"‹run_report@0 fault: the JSON of the report breaks at its byte 1: '<' where { should be›",
	},
	{
		"a report with a tail", "<<<RUN_REPORT_JSON {} {} RUN_REPORT_JSON>>>\n",
		"‹run_report@0 fault: something follows the JSON of the report, from its byte 3 on›",
	},
	{
		"a report that is not closed", "<<<RUN_REPORT_JSON {\"a\":1 RUN_REPORT_JSON>>>\n",
		"‹run_report@0 fault: the JSON of the report is not closed›",
	},
	{"a report without end", "<<<RUN_REPORT_JSON {}\n", "‹run_report@0 fault: the message ended before RUN_REPORT_JSON>>>›"},
	{
		"a report begun twice", "<<<RUN_REPORT_JSON {\"a\n<<<RUN_REPORT_JSON {} RUN_REPORT_JSON>>>\n",
		"‹run_report@0 fault: a second report begins before the first one ended›‹run_report@23 {}›",
	},
	{"letters of several bytes", "é[AGENT_STATUS] {\"a\":\"ü🜚\"}ß", "é‹agent_status@2 {\"a\":\"ü🜚\"}›ß"},
}

func TestStreams(t *testing.T) {
	for _, c := range streams {
		t.Run(c.name, func(t *testing.T) {
			if got := told(scan(c.in)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			for i := range c.in {
				if got := told(scan(c.in[:i], c.in[i:])); got != c.want {
					t.Errorf("cut at %d: got\n%s\nwant\n%s", i, got, c.want)
				}
				for j := i; j < len(c.in); j++ {
					if got := told(scan(c.in[:i], c.in[i:j], c.in[j:])); got != c.want {
						t.Fatalf("cut at %d and %d: got\n%s\nwant\n%s", i, j, got, c.want)
					}
				}
			}
			if got := told(scan(strings.Split(c.in, "")...)); got != c.want {
				t.Errorf("letter by letter: got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Who only talks is heard at once: nothing is held back but what may become a marker.
func TestTalkIsNotHeldBack(t *testing.T) {
	var s Scanner
	for _, c := range []struct{ in, want string }{
		{"Hel", "Hel"}, {"lo [", "lo "}, {"x] TURN", "[x] "}, {"IP", "TURNIP"}, {" <<", " "}, {"<", ""}, {"!", "<<<!"},
	} {
		if got := told(s.Write([]byte(c.in))); got != c.want {
			t.Errorf("after %q: %q, want %q", c.in, got, c.want)
		}
	}
}

// A marker acts when it is whole, not when the next line comes.
func TestMarkerIsNotHeldBack(t *testing.T) {
	var s Scanner
	if got := told(s.Write([]byte(`[AGENT_STATUS] {"agents":[]}`))); got != `‹agent_status@0 {"agents":[]}›` {
		t.Errorf("got %q", got)
	}
	if got := told(s.Write([]byte("  \n\nhi"))); got != "\nhi" {
		t.Errorf("got %q", got)
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct{ name, in, fault, rest string }{
		{
			"object", `[AGENT_STATUS] {"a":"` + strings.Repeat("x", jsonBytesMax), "the JSON of [AGENT_STATUS] is longer than 1024 KiB",
			"xxxxx",
		},
		{
			"report", "<<<RUN_REPORT_JSON" + strings.Repeat("y", jsonBytesMax+100) + "RUN_REPORT_JSON>>>",
			"the JSON of <<<RUN_REPORT_JSON is longer than 1024 KiB", "RUN_REPORT_JSON>>>",
		},
		{
			"report begun again too late",
			"<<<RUN_REPORT_JSON" + strings.Repeat("y", jsonBytesMax+100) + "<<<RUN_REPORT_JSON{}RUN_REPORT_JSON>>>",
			"the JSON of <<<RUN_REPORT_JSON is longer than 1024 KiB", "‹run_report@1048694 {}›",
		},
		{
			"depth", "[AGENT_STATUS] {\"a\":" + strings.Repeat("[", 100) + "\n",
			"the JSON of [AGENT_STATUS] breaks at its byte 69: nested deeper than 64", "[[[",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var parts []string
			for i := 0; i < len(c.in); i += 4099 {
				parts = append(parts, c.in[i:min(i+4099, len(c.in))])
			}
			whole, cut := scan(c.in), scan(parts...)
			if told(whole) != told(cut) {
				t.Error("in parts it is another story")
			}
			m := cut[0].Marker
			if m == nil || m.Fault != c.fault || len(m.Text) > quoteBytesMax {
				t.Errorf("got %.200q, want the fault %q", told(cut[:1]), c.fault)
			}
			if got := told(cut[1:]); !strings.Contains(got, c.rest) {
				t.Errorf("the stream does not go on with %q, but with %.100q", c.rest, got)
			}
		})
	}
}

// Reports that begin and never end cost no more than any other output, also when they come in
// one piece.
func TestBegunAgainAndAgain(t *testing.T) {
	const bytes = 2 << 20
	began := time.Now()
	pieces := scan(strings.Repeat("<<<RUN_REPORT_JSON\n", bytes/19))
	if took := time.Since(began); took > 5*time.Second { // the square of it takes minutes
		t.Errorf("%d bytes take %s", bytes, took)
	}
	if len(pieces) < bytes/19 {
		t.Errorf("%d pieces of %d", len(pieces), bytes/19)
	}
}

// An object that comes byte by byte costs what it costs in one piece. What looks at it from its beginning with each byte takes half an hour
// for this one.
func TestByteByByte(t *testing.T) {
	want := `[AGENT_STATUS] {"a":"` + strings.Repeat("x", jsonBytesMax-100) + `"}`
	var s Scanner
	var out []Piece
	for i := range want {
		out = append(out, s.Write([]byte(want[i:i+1]))...)
	}
	if len(out) != 1 || out[0].Marker == nil || "[AGENT_STATUS] "+string(out[0].Marker.JSON) != want {
		t.Errorf("%d pieces, the first one %.100q", len(out), told(out[:1]))
	}
}

// corpus are the streams of the table and those that fuzzing found.
func corpus(f *testing.F) {
	for _, c := range streams {
		f.Add([]byte(c.in), uint16(7), uint16(20))
	}
}

// FuzzScan holds the promise: the same pieces however the stream is cut, in order, and no
// byte of conversation that was not there.
func FuzzScan(f *testing.F) {
	corpus(f)
	f.Fuzz(func(t *testing.T, in []byte, a, b uint16) {
		i := int(a) % (len(in) + 1)
		j := i + int(b)%(len(in)-i+1)
		whole := scan(string(in))
		if got, want := told(scan(string(in[:i]), string(in[i:j]), string(in[j:]))), told(whole); got != want {
			t.Fatalf("cut at %d and %d: got\n%q\nwant\n%q", i, j, got, want)
		}
		rest, at := in, int64(-1)
		for _, p := range whole {
			if p.Marker == nil {
				k := bytes.Index(rest, p.Text)
				if k < 0 {
					t.Fatalf("%q was never said", p.Text)
				}
				rest = rest[k+len(p.Text):]
				continue
			}
			if p.Marker.Offset <= at {
				t.Fatalf("a marker at %d after one at %d", p.Marker.Offset, at)
			}
			at = p.Marker.Offset
			if isWord(p.Marker.Kind) {
				continue
			}
			if (p.Marker.Fault == "") != json.Valid(p.Marker.JSON) {
				t.Fatalf("%q is valid JSON: %v, and its fault %q", p.Marker.JSON, json.Valid(p.Marker.JSON), p.Marker.Fault)
			}
		}
	})
}

// FuzzObject compares our reading of JSON with the standard library's.
func FuzzObject(f *testing.F) {
	for _, text := range []string{
		`{}`, `{"a":1}`, `{"a":-0.5e+10,"b":[true,false,null,{}]}`, `{"a":"\u00e9\\\"\n"}`, `{"a":01}`, `{"a":1.}`, `{"a":-}`,
		`{"a":tru}`, `{"a":[1,]}`, `{,}`, `{"a":1,}`, `{"a" 1}`, `{"a":"\x"}`, `{"a":"` + "\x01" + `"}`, `{"a":[}`, `{"a":1e5}`,
		` { "a" : [ ] } `, `{"a":1]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var o object
		ours := false
		for i, c := range in {
			done, err := o.next(c)
			if err != nil {
				break
			}
			if done {
				ours = len(bytes.TrimLeft(in[i+1:], " \t\r\n")) == 0
				break
			}
		}
		theirs := json.Valid(in) && bytes.HasPrefix(bytes.TrimLeft(in, " \t\r\n"), []byte("{"))
		// What we refuse beyond the standard: depth. Nothing else.
		if ours != theirs && !(theirs && len(o.nest) == jsonDepthMax) {
			t.Fatalf("%q is an object: %v, and by encoding/json: %v", in, ours, theirs)
		}
	})
}

// The seed's own documents and ours may speak of markers as much as they like.
func TestProseIsProse(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "prose.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range scan(string(text)) {
		if p.Marker != nil {
			t.Errorf("taken for a marker: %q (%s)", p.Marker.Text, p.Marker.Fault)
		}
	}
}

// BenchmarkScan measures the cost of a scan: a conversation, cut as a terminal cuts it, and the
// worst possible input.
func BenchmarkScan(b *testing.B) {
	for name, text := range map[string]string{
		"talk":    strings.Repeat("So I went and looked at the file, and [as I feared] the Test was red.\n", 1000),
		"hostile": strings.Repeat(`[AGENT_STATUS] {"a":"[AGENT_STATUS] {`, 2000),
		"tags":    strings.Repeat("[AGENT_STATUS]", 5000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				var s Scanner
				for i := 0; i < len(text); i += 512 {
					s.Write([]byte(text[i:min(i+512, len(text))]))
				}
				s.Flush()
			}
		})
	}
}
