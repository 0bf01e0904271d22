package wire

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/controller/seam"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/machine/host"
)

// travels lists what is sent as JSON.
var travels = []any{
	StartIn{},
	Status{},
	AdoptIn{},
	AdoptOut{},
	InputIn{},
	EndIn{},
	seam.Ending{},
	seam.Proof{},
	RenewIn{},
	RenewOut{},
	GrantIn{},
	host.Grant{},
	CertificateIn{},
	CertificateOut{},
	Caller{},
	Problem{},
}

// TestShapes compares the JSON of each protocol with a file. One that another version of Fairlead speaks does not
// change: a field that is added without a number, or a field of the journal that travels, would be refused there.
func TestShapes(t *testing.T) {
	for _, p := range Speaks() {
		var b strings.Builder
		for _, is := range travels {
			shape(&b, p, reflect.TypeOf(is).String(), reflect.TypeOf(is))
		}
		file := filepath.Join("testdata", "protocol-"+p.String()+".txt")
		if p == Newest() {
			golden.Check(t, file, b.String())
			continue
		}
		was, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			if !strings.Contains(string(was), line+"\n") && line != "" {
				t.Errorf("protocol %s has no %q: give the field a number (see Protocol)", p, line)
			}
		}
		for line := range strings.Lines(string(was)) {
			if !strings.Contains(b.String(), line) {
				t.Errorf("protocol %s lacks %q, which a host of an older version needs", p, line)
			}
		}
	}
}

// shape writes a line for each field of a type.
func shape(b *strings.Builder, p Protocol, path string, t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		path += map[reflect.Kind]string{reflect.Slice: "[]"}[t.Kind()]
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[time.Time]() {
		fmt.Fprintf(b, "%s %s\n", path, t)
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case !f.IsExported() || nameOf(f) == "-" || since(f) > p:
		case f.Anonymous && f.Tag.Get("json") == "":
			shape(b, p, path, f.Type)
		default:
			shape(b, p, path+"."+nameOf(f), f.Type)
		}
	}
}

// TestNumbers checks the tags: a field with a number is optional, and its number is that of the newest protocol, as
// the versions before that one do not speak are gone.
func TestNumbers(t *testing.T) {
	seen := 0
	var look func(reflect.Type)
	look = func(t0 reflect.Type) {
		for t0.Kind() == reflect.Pointer || t0.Kind() == reflect.Slice {
			t0 = t0.Elem()
		}
		if t0.Kind() == reflect.Map && t0.Elem().Kind() == reflect.Struct {
			t.Errorf("values of %v are not looked at", t0)
		}
		if t0.Kind() != reflect.Struct {
			return
		}
		for i := range t0.NumField() {
			f := t0.Field(i)
			if tag := f.Tag.Get("since"); tag != "" {
				seen++
				if tag != Newest().String() {
					t.Errorf("%v.%s is since %s: only %s is a number here", t0, f.Name, tag, Newest())
				}
				if !strings.Contains(f.Tag.Get("json"), ",omit") {
					t.Errorf("%v.%s is not optional", t0, f.Name)
				}
			}
			look(f.Type)
		}
	}
	for _, is := range travels {
		look(reflect.TypeOf(is))
	}
	if seen == 0 {
		t.Error("no field has a number: there is one protocol only")
	}
}

type part struct {
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty" since:"2"`
}

type whole struct {
	part
	One  part    `json:"one"`
	To   *part   `json:"to,omitempty"`
	List []part  `json:"list,omitempty"`
	Far  []*part `json:"far,omitempty"`
	Text []byte  `json:"text,omitempty"`
	Name *string `json:"name,omitempty"`
}

// TestOlderProtocol checks that an older side gets nothing that it does not know, wherever that is, and that what it
// may not have sent is refused.
func TestOlderProtocol(t *testing.T) {
	name := "n"
	is := whole{part{}, part{"a", "b"}, &part{"c", "d"}, []part{{"e", "f"}}, []*part{{"g", "h"}, nil}, []byte("x"), &name}
	before := fmt.Sprintf("%+v %+v %+v", is, *is.To, *is.Far[0])
	for p, want := range map[Protocol]string{
		1: `{"one":{"old":"a"},"to":{"old":"c"},"list":[{"old":"e"}],"far":[{"old":"g"},null],"text":"eA==","name":"n"}`,
		2: `{"one":{"old":"a","new":"b"},"to":{"old":"c","new":"d"},"list":[{"old":"e","new":"f"}],"far":[{"old":"g","new":"h"},null],"text":"eA==","name":"n"}`,
	} {
		for _, value := range []any{is, &is} {
			got, err := Encode(p, value)
			if err != nil || string(got) != want {
				t.Errorf("protocol %d: %s, %v", p, got, err)
			}
		}
		for at := range Protocol(3) {
			if at == 0 {
				continue
			}
			var back whole
			err := at.read(strings.NewReader(want), &back)
			if refused := at < p; (err != nil) != refused || refused && !strings.Contains(err.Error(), "protocol 1 between hosts does not have: new") {
				t.Errorf("what %d wrote is read at %d: %v", p, at, err)
			}
		}
	}
	if after := fmt.Sprintf("%+v %+v %+v", is, *is.To, *is.Far[0]); after != before {
		t.Errorf("the value itself changed: %s", after)
	}
	if got, err := Encode(1, nil); err != nil || string(got) != "null" {
		t.Errorf("%s, %v", got, err)
	}
	if p, is := errors.AsType[*Problem](Protocol(1).read(strings.NewReader(`{"newer":1}`), new(whole))); !is || p.Code != BadRequest {
		t.Errorf("a field of no protocol: %v", p)
	}
}

func TestSpeaks(t *testing.T) {
	defer func(was string) { newest = was }(newest)
	for text, want := range map[string][]Protocol{"1": {1}, "2": {2, 1}, "3": {3, 2}} {
		if newest = text; !slices.Equal(Speaks(), want) {
			t.Errorf("%s: %v", text, Speaks())
		}
	}
	newest = "3"
	if p, err := ParseProtocol("2"); p != 2 || err != nil {
		t.Error(p, err)
	}
	for _, text := range []string{"1", "4", "", "02", "2 "} {
		if _, err := ParseProtocol(text); err == nil || !strings.Contains(err.Error(), "it supports 3 and 2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestLacking looks for what is here and what is not, on a disk with room.
func TestLacking(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "claude"), nil, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	uses := []host.Lack{{What: host.Program, Name: "claude"}, {What: host.Program, Name: "codex"}, {What: host.Variable, Name: "EMPTY"}, {What: host.Variable, Name: "KEY"}, {What: "gpu", Name: "of a later version"}}
	got := slices.DeleteFunc(Lacking(uses, nil, []string{"PATH=" + root, "EMPTY=", "KEYS=x"}, root), func(l host.Lack) bool { return l.What == host.Disk }) // the machine of the test may have little room
	if want := []host.Lack{{What: host.Program, Name: "codex"}, {What: host.Variable, Name: "KEY"}}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	for free, want := range map[uint64][2]bool{0: {true, true}, 1<<30 - 1: {true, true}, 1 << 30: {false, true}, 1<<30 + 1<<28: {false, false}} {
		if got := [2]bool{full(free, false), full(free, true)}; got != want {
			t.Errorf("%d bytes are free: %v", free, got)
		}
	}
}
