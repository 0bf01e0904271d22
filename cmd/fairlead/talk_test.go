package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
)

// What a person says is taken as it was typed, up to what a message may be.
func TestSpoken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		words []string
		in    string
		want  string
		fault string
	}{
		{words: []string{"how", "far are", "you?"}, want: "how far are you?"},
		{words: []string{"-"}, in: "two\nlines\n", want: "two\nlines"},
		{words: []string{"-", "x"}, in: "unread", want: "- x"},
		{words: []string{"-"}, in: strings.Repeat("a", cli.SpokenMost) + "\n", want: strings.Repeat("a", cli.SpokenMost)},
		{words: []string{"-"}, in: strings.Repeat("a", cli.SpokenMost+1), fault: "more than 128 KiB"},
		{words: []string{"-"}, in: strings.Repeat("a", cli.SpokenMost+5), fault: "more than 128 KiB"},
		{words: []string{"-"}, in: "\n\n", fault: "the text is empty"},
		{words: []string{"a\xff"}, fault: "not UTF-8"},
	} {
		a := &cli.App{In: strings.NewReader(c.in)}
		text, err := a.Spoken(c.words)
		if text != c.want || (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%.40q of %.20q: %.40q, %v", c.words, c.in, text, err)
		}
	}
}

// A shell is offered channels, then agents, and for watch both.
func TestChannelCompletion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	text := "version: 1\nagents:\n  ada: {driver: exec, command: [\"true\"], description: A}\n  bob: {driver: exec, command: [\"true\"]}\nchannels:\n  talk: {agents: [ada, bob]}\n  desk: {agents: [bob]}\n"
	if err := os.WriteFile(filepath.Join(dir, "fairlead.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, words := range map[string][]string{
		"desk talk":                       {"channel", "say", ""},
		"ada bob":                         {"channel", "grant", "talk", ""},
		"ada bob desk talk":               {"watch", ""},
		"":                                {"channel", "skip", "talk", ""},
		"queue inject interrupt parallel": {"channel", "say", "talk", "--mode", ""},
	} {
		var out, errs bytes.Buffer
		if code := run(append([]string{"__complete", "--dir", dir}, words...), nil, &out, &errs); code != cli.ExitDone {
			t.Errorf("%q: exit code %d: %s", words, code, &errs)
		}
		var got []string
		for l := range strings.Lines(out.String()) {
			if name, _, _ := strings.Cut(strings.TrimSpace(l), "\t"); !strings.HasPrefix(name, ":") {
				got = append(got, name)
			}
		}
		if want != "queue inject interrupt parallel" {
			slices.Sort(got)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}
