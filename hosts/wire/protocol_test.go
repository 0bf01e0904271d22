package wire

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// travels lists what is sent as JSON.
var travels = []any{
	StartIn{},
	Status{},
	AdoptIn{},
	AdoptOut{},
	InputIn{},
	EndIn{},
	session.Exit{},
	sessionhost.Proof{},
	RenewIn{},
	RenewOut{},
	GrantIn{},
	host.Grant{},
	CertificateIn{},
	CertificateOut{},
	Caller{},
	Problem{},
}

// TestShapes compares the JSON with a file. A difference needs another number of the protocol, because hosts and leaders
// with the same one work together.
func TestShapes(t *testing.T) {
	var b strings.Builder
	for _, is := range travels {
		shape(&b, reflect.TypeOf(is).String(), reflect.TypeOf(is))
	}
	golden.Check(t, filepath.Join("testdata", "protocol-"+Own().String()+".txt"), b.String())
}

// shape writes a line for each field of a type.
func shape(b *strings.Builder, path string, t reflect.Type) {
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
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-":
		case f.Anonymous && name == "":
			shape(b, path, f.Type)
		case name == "":
			shape(b, path+"."+f.Name, f.Type)
		default:
			shape(b, path+"."+name, f.Type)
		}
	}
}

// TestLacking looks for what is here and what is not, on a disk with room.
func TestLacking(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "claude"), nil, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	uses := []host.Lack{
		{What: host.Program, Name: "claude"},
		{What: host.Program, Name: "codex"},
		{What: host.Variable, Name: "EMPTY"},
		{What: host.Variable, Name: "KEY"},
		{What: "gpu", Name: "of a later version"},
	}
	got := slices.DeleteFunc(Lacking(uses, nil, []string{"PATH=" + root, "EMPTY=", "KEYS=x"}, root),
		func(l host.Lack) bool { return l.What == host.Disk }) // the machine of the test may have little room
	if want := []host.Lack{{What: host.Program, Name: "codex"}, {What: host.Variable, Name: "KEY"}}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	for free, want := range map[uint64][2]bool{
		0: {true, true}, 1<<30 - 1: {true, true}, 1 << 30: {false, true},
		1<<30 + 1<<28: {false, false},
	} {
		if got := [2]bool{full(free, false), full(free, true)}; got != want {
			t.Errorf("%d bytes are free: %v", free, got)
		}
	}
}
