package sandbox

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	Intercept()
	actIfAsked()
	os.Exit(m.Run())
}

// need skips the test if the kernel has no Landlock.
func need(t testing.TB) {
	t.Helper()
	if _, why := Supported(); why != "" {
		t.Skip("skipped, the kernel has no sandbox: ", why)
	}
}

func TestProbe(t *testing.T) {
	need(t)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	if err := Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestWrapIsWhatParseReads(t *testing.T) {
	for _, box := range []Box{
		{},
		{Write: []string{"/a", "/b c"}},
		{Write: []string{"/-- "}, Attributes: true},
		{Sockets: true, Attributes: true},
		{Write: []string{"/w"}, Terminals: true},
		{Execute: []string{"/bin/sh", "/b c"}, Alone: true},
	} {
		argv := Wrap("/bin/fairlead", []string{"sh", "-c", "--write", "--", ""}, box)
		got, program, err := parse(argv[2:])
		if err != nil || argv[0] != "/bin/fairlead" || argv[1] != Verb {
			t.Fatalf("%q: %v", argv, err)
		}
		if !slices.Equal(got.Write, box.Write) || got.Attributes != box.Attributes || got.Sockets != box.Sockets || got.Terminals != box.Terminals || got.Alone != box.Alone || !slices.Equal(got.Execute, box.Execute) || !slices.Equal(program, argv[len(argv)-5:]) {
			t.Errorf("%q gave %+v and %q", argv, got, program)
		}
	}
}

// Only what Wrap writes is accepted, because a misread word could be a permission.
func TestParseRefuses(t *testing.T) {
	many := slices.Repeat([]string{"--write", "/x"}, writesMax+1)
	for _, c := range []struct{ args, want string }{
		{"", "no -- and no program"},
		{"--write /x", "no -- and no program"},
		{"--write", "no folder after --write"},
		{"--", "no program"},
		{"-- ", "no program"},
		{"--write /x true", "not understood"},
		{"--write=/x -- true", "not understood"},
		{"-w /x -- true", "not understood"},
		{"--write x -- true", "no absolute path"},
		{"--write /x/../y -- true", "no absolute path"},
		{"--write /x/ -- true", "no absolute path"},
		{"--write  -- true", "no absolute path"},
		{"--write / -- true", "would defeat the sandbox"},
		{"--write /proc -- true", "would defeat the sandbox"},
		{"--write /proc/self -- true", "would defeat the sandbox"},
		{"--write /sys/fs -- true", "would defeat the sandbox"},
		{"--write /dev -- true", "would defeat the sandbox"},
		{strings.Join(many, " ") + " -- true", "are the most"},
	} {
		_, _, err := parse(words(c.args))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.args, err, c.want)
		}
	}
}

func words(line string) []string {
	if line == "" {
		return nil
	}
	return strings.Split(line, " ")
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"--write\n/a\n--\ntrue", "--\nsh\n-c\nid", "--attributes\n--sockets\n--\nx", "--write\n/\n--\nx", "--write\n--\n--\nx", "\n", "--try\n/a\n/b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		box, argv, err := parse(strings.Split(line, "\n"))
		if err != nil {
			return
		}
		for _, w := range box.Write {
			if !strings.HasPrefix(w, "/") || w == "/" || strings.Contains(w+"/", "/../") {
				t.Fatalf("%q grants %q", line, w)
			}
		}
		again, program, err := parse(Wrap("fairlead", argv, box)[2:])
		if err != nil || !slices.Equal(again.Write, box.Write) || !slices.Equal(program, argv) || again.Attributes != box.Attributes || again.Sockets != box.Sockets || again.Terminals != box.Terminals || again.Alone != box.Alone || !slices.Equal(again.Execute, box.Execute) {
			t.Fatalf("%q is read as %+v %q and then as %+v %q, %v", line, box, argv, again, program, err)
		}
	})
}
