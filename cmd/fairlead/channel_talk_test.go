package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/channels"
	"github.com/fairlead-dev/fairlead/read/view"
)

// A talker is a script agent that keeps books of its own: each prompt that it was given, each
// message in it, and each thing that it said. What a daemon says happened is held to them.

// talkerScript hands each prompt to talkerSays; what that prints are the agent's own words.
const talkerScript = `sessions: [{steps: [{say: I only talk in channels}]}]
turn:
  - run: echo $SESSION >> starts
  - expect_prompt
  - run: sh ../talker.sh
    says: true
  - again
`

// talkerSays answers one prompt. A talker works for as long as there is a file `busy` in its
// folder, and where there is a file `wait` it asks to wait, once.
const talkerSays = `printf '%s\n' "$PROMPT" > prompt.part
IFS= read -r first < prompt.part
echo "$SESSION $first" >> told
sed -n "s/^#\([0-9]*\) from .*/$SESSION \1/p" prompt.part >> heard
mv prompt.part "prompt-$(grep -c . told)"
while test -e busy; do sleep 0.02; done
say() { n=$(($(grep -c . said) + 1)); echo "$NAME-$n" >> said; echo "$1 $NAME-$n"; }
case $first in
*"waits for your answer"*) say aside;;
*"to everybody at once"*) say apart;;
*"your turn to speak"* | *"your turn goes on"*)
	if test -e wait; then rm wait; say pausing; echo TURN_WAIT; else say turn; echo TURN_COMPLETE; fi;;
esac
`

// talkers are the files of a team of them; more is added to fairlead.yaml.
func talkers(more string, names ...string) map[string]string {
	files := map[string]string{"talker.script.yaml": talkerScript, "talker.sh": talkerSays}
	yaml := "version: 1\nagents:\n"
	for _, name := range names {
		yaml += fmt.Sprintf("  %s: {driver: script, script: talker.script.yaml, workspace: %s, failures_max: 1000, backoff: {first: 1ms, max: 1ms}}\n", name, name)
		files[name+"/said"] = ""
	}
	files["fairlead.yaml"] = yaml + more
	return files
}

func (s *rig) put(path, text string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, path), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *rig) drop(path string) {
	s.t.Helper()
	if err := os.Remove(filepath.Join(s.dir, path)); err != nil {
		s.t.Fatal(err)
	}
}

// floor is a channel as it stands now.
func (s *rig) floor(name string) view.ChannelView {
	s.t.Helper()
	view, err := s.client().Channels.Show(context.Background(), name)
	if err != nil {
		s.t.Fatal(err)
	}
	return view
}

// floorUntil waits for a condition on a channel.
func (s *rig) floorUntil(name, what string, ok func(view.ChannelView) bool) view.ChannelView {
	s.t.Helper()
	client := s.client()
	return seenUntil(s.t, what, func() (view.ChannelView, error) { return client.Channels.Show(context.Background(), name) }, ok,
		func() string { return s.conversation(name) })
}

// settled reports whether no participant has anything to do in a channel.
func settled(v view.ChannelView) bool {
	if v.Holder != "" || v.Aside != nil {
		return false
	}
	for _, m := range v.Open {
		if m.State == "queued" || m.State == "delivered" && m.Mode != "parallel" { // one to all stays until its time is over
			return false
		}
	}
	return !slices.ContainsFunc(v.Agents, func(m view.MemberView) bool { return m.Working })
}

// member is how one agent stands in a channel; its zero value where it does not.
func member(v view.ChannelView, name string) view.MemberView {
	for _, m := range v.Agents {
		if m.Name == name {
			return m
		}
	}
	return view.MemberView{}
}

// entries is everything that a channel shows, the oldest first.
func (s *rig) entries(name string) (all []view.ChannelEntry) {
	s.t.Helper()
	client := s.client()
	before := uint64(0)
	for {
		page, err := client.Channels.Entries(context.Background(), name,
			view.EntryQuery{Before: before, Limit: channels.EntriesMost, Moves: true})
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(page.Entries, all...)
		if len(page.Entries) == 0 || !page.More {
			return all
		}
		before = page.Entries[0].Seq
	}
}

// conversation is that for a failing test: a line for each.
func (s *rig) conversation(name string) string {
	var b strings.Builder
	for _, e := range s.entries(name) {
		fmt.Fprintf(&b, "%d %s\n", e.Seq, entryLine(e))
	}
	return b.String()
}

// entryLine is an entry in a few words.
func entryLine(e view.ChannelEntry) string {
	switch e.Kind {
	case channels.EntryMoved:
		return fmt.Sprintf("%s %s -> %s %s", e.Agent, e.From, e.To, e.Row)
	case channels.EntryHuman:
		return fmt.Sprintf("a person: %s", cli.Line(e.Text, 100))
	case channels.EntryNotice, channels.EntryWarning:
		return e.Kind + ": " + e.Text
	default:
		return fmt.Sprintf("%s (%s): %s", e.By, e.Kind, cli.Line(e.Text, 100))
	}
}

// books are what the talkers of a rig kept.
type books struct {
	told  map[string][]string // by agent: the first line of each prompt, behind its session
	heard map[string][]string // by agent: session and number of each message in a prompt
	said  map[string][]string // by agent: the word by which to know each thing that it said

	unseen map[string]bool // sessions that died before anybody knew that they had begun
}

func (s *rig) books(names ...string) books {
	b := books{told: map[string][]string{}, heard: map[string][]string{}, said: map[string][]string{}}
	for _, name := range names {
		for file, to := range map[string]map[string][]string{"told": b.told, "heard": b.heard, "said": b.said} {
			text, err := os.ReadFile(filepath.Join(s.dir, name, file))
			if err == nil && len(text) > 0 {
				to[name] = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
			}
		}
	}
	return b
}

var turnTold = regexp.MustCompile(`, turn ([0-9]+): it is your turn to speak`)

// faults are what a daemon owes to whom it has promised exactly once, and did not keep.
type faults struct {
	twiceTold, twiceHeard, twiceSaid, lostSaid, untold, lostWords, twiceWords, moves []string
}

func (f faults) all() []string {
	return slices.Concat(f.twiceTold, f.twiceHeard, f.twiceSaid, f.lostSaid, f.untold, f.lostWords, f.twiceWords, f.moves)
}

// audit holds a conversation to the books. Sent are the texts that people said and that were
// acknowledged; others may have said more.
func (b books) audit(all []view.ChannelEntry, sent []string) (f faults) {
	posted, people, by := map[string]int{}, map[string]int{}, map[string][]uint64{}
	for _, e := range all {
		switch e.Kind {
		case channels.EntryHuman:
			people[e.Text]++
		case channels.EntryTurn, channels.EntryAside, channels.EntryLate:
			for _, word := range strings.Fields(e.Text) {
				posted[word]++
			}
		case channels.EntryMoved:
			if e.Row == "T4" {
				by[e.Agent] = append(by[e.Agent], e.Turn)
			}
		}
	}
	for text, n := range people {
		if n > 1 {
			f.twiceWords = append(f.twiceWords, fmt.Sprintf("%q of a person is there %d times", text, n))
		}
	}
	for _, text := range sent {
		if people[text] == 0 {
			f.lostWords = append(f.lostWords, fmt.Sprintf("%q of a person was acknowledged and is not there", text))
		}
	}
	for name, words := range b.said {
		for _, word := range words {
			switch n := posted[word]; {
			case n > 1:
				f.twiceSaid = append(f.twiceSaid, fmt.Sprintf("%s said %s once, and it is there %d times", name, word, n))
			case n == 0:
				f.lostSaid = append(f.lostSaid, fmt.Sprintf("%s said %s, and it is not there", name, word))
			}
		}
	}
	f.moves = oneSpeaker(all)
	b.prompts(&f, by)
	return f
}

// prompts compares what agents were told with the turns that were given to them.
func (b books) prompts(f *faults, given map[string][]uint64) {
	told, in := map[uint64]string{}, map[uint64]string{}
	for _, name := range slices.Sorted(maps.Keys(b.told)) {
		for _, line := range b.told[name] {
			found := turnTold.FindStringSubmatch(line)
			if found == nil {
				continue
			}
			n, err := strconv.ParseUint(found[1], 10, 64)
			if err != nil {
				panic(err) // they are digits
			}
			if before, ok := told[n]; ok && !b.unseen[in[n]] {
				f.twiceTold = append(f.twiceTold,
					fmt.Sprintf("%s was told of turn %d in %q, and %s before in %s", name, n, line, before, in[n]))
			}
			told[n] = name
			in[n], _, _ = strings.Cut(line, " ")
		}
	}
	for name, turns := range given {
		for _, n := range turns {
			if told[n] != name {
				f.untold = append(f.untold, fmt.Sprintf("%s was given turn %d, and %q was told so", name, n, told[n]))
			}
		}
	}
	for name, lines := range b.heard {
		times := map[string]int{}
		for _, line := range lines {
			_, n, _ := strings.Cut(line, " ")
			if times[n]++; times[n] == 2 {
				f.twiceHeard = append(f.twiceHeard, fmt.Sprintf("%s was given message %s twice: %q", name, n, lines))
			}
		}
	}
}

// oneSpeaker plays the moves of a channel again: one of its agents holds the turn at most, each
// is where it was left, and turns are numbered upwards.
func oneSpeaker(all []view.ChannelEntry) (wrong []string) {
	state := map[string]string{}
	last := uint64(0)
	for _, e := range all {
		if e.Kind != channels.EntryMoved {
			continue
		}
		// OFFLINE and IDLE are the agent's own: it goes from one to the other outside of the channel.
		if was := state[e.Agent]; was != "" && was != e.From && (holding(was) || holding(e.From) || was == "QUEUED" || e.From == "QUEUED") {
			wrong = append(wrong, fmt.Sprintf("%d: %s was %s: %s", e.Seq, e.Agent, was, entryLine(e)))
		}
		state[e.Agent] = e.To
		if e.Row == "T4" {
			if e.Turn <= last {
				wrong = append(wrong, fmt.Sprintf("%d: turn %d after turn %d", e.Seq, e.Turn, last))
			}
			last = e.Turn
		}
		var who []string
		for name, is := range state {
			if holding(is) {
				who = append(who, name)
			}
		}
		if len(who) > 1 {
			slices.Sort(who)
			wrong = append(wrong, fmt.Sprintf("%d: %q hold the turn", e.Seq, who))
		}
	}
	return wrong
}

func holding(state string) bool { return state == "ACTIVE" || state == "WAITING" }

// wordsOf sorts what an audit found, so that the same faults read the same.
func wordsOf(f faults) []string {
	all := f.all()
	slices.SortFunc(all, cmp.Compare[string])
	return all
}
