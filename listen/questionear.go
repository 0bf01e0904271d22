package listen

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/controller/channels"
	"github.com/fairlead-dev/fairlead/controller/questions"
	"github.com/fairlead-dev/fairlead/controller/sessions"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/loop"
	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/policy"
	"github.com/fairlead-dev/fairlead/team"
)

// What an agent asks for is answered by the rules, by an answer that stands, by a person or by time.
// Whoever has work in a session folder is judged by that folder's rules instead (workEar).

// callIn is a call of this session, in the folder that it works in.
func (l *Ear) callIn(fact driver.Fact) policy.Call {
	call := CallOf(fact)
	call.Dir = l.m.Conf.Workspace
	if l.s.Launch != nil && l.s.Launch.Dir != "" {
		call.Dir = l.s.Launch.Dir
	}
	return call
}

// pastRules are the calls of a session that its rules deny and that it did not ask for. Not every
// program asks before everything, and some tell of a call before they ask for it: so who has not asked
// is known when the answer is over. Whether such a call was carried out is not: the program may have
// rules of its own.
type pastRules struct {
	open  map[string]string // by what the call is; told of, and not asked for yet
	found []string
	more  int
}

func (p *pastRules) called(call policy.Call, rule string) {
	if p.open == nil {
		p.open = map[string]string{}
	}
	if len(p.open) < notesMax {
		p.open[callName(call)] = loop.CutText(strings.TrimSpace(call.Tool+" "+questions.Shown(call.Input)), channels.WhyShownMax) + " (" + loop.CutText(rule, channels.WhyShownMax) + ")"
	}
}

func (p *pastRules) asked(call policy.Call) { delete(p.open, callName(call)) }

// over takes what was not asked for as done without asking.
func (p *pastRules) over() {
	for _, name := range slices.Sorted(maps.Keys(p.open)) {
		if len(p.found) < sessions.PastShown {
			p.found = append(p.found, p.open[name])
		} else {
			p.more++
		}
	}
	p.open = nil
}

// words is what a person should know of a result that came of it; empty: nothing.
func (p *pastRules) words() string {
	if p.over(); len(p.found) == 0 {
		return ""
	}
	text := sessions.NotAsked + strings.Join(p.found, "; ")
	if p.more > 0 {
		text += fmt.Sprintf("; and %d more", p.more)
	}
	return text
}

// callName tells one call from another, also where what it is about is not known.
func callName(call policy.Call) string {
	if key := KeyOf(call, nil); key != "" {
		return key
	}
	return call.Tool + " " + string(call.Input)
}

// raise makes a question of what a session asks for, for the report that is being made. ruled: nobody
// need be waited for, since a rule answers it, or an answer that stands.
func (l *Ear) raise(ctx context.Context, fact driver.Fact) (ruled bool, err error) {
	conf := l.m.Conf
	call := l.callIn(fact)
	q := question.Question{
		Kind: question.Permission, Agent: conf.Name, Session: l.s.ID, Ask: fact.Ask.ID, What: fact.Text, Tool: call.Tool,
		Call: questions.CallShown(call.Input), Key: KeyOf(call, fact.Ask.Paths), Paths: fact.Ask.Paths, Otherwise: conf.Permissions.Otherwise == config.OtherwiseAllow,
		Why: questions.NoRule,
	}
	for _, o := range fact.Ask.Options {
		q.Options = append(q.Options, question.Option(o))
	}
	var ask question.Ask
	var doubt string
	if ask.Verdict, doubt = l.e.questions.Rules[l.m.Conf.Name].Verdict(call, fact.Ask.Paths, call.Dir); doubt != "" {
		q.Why, q.Otherwise = questions.InDoubt+doubt, false
	}
	if cut := CutIn(fact); len(cut) > 0 {
		q.Key, q.Why = "", "it is too long to be judged by a rule: "+strings.Join(cut, ", ")+" is not whole"
		if ask.Verdict.Allow {
			ask.Verdict = question.Verdict{} // what was read may be what is harmless of it; a no stands
		}
	}
	ask.Question = q
	ruled = ask.Verdict.Rule != "" && q.CanSay(ask.Verdict.Allow)
	l.past.asked(call)
	err = l.e.View(ctx, func(t *team.Team) {
		stands := t.Questions.Covering(q.Agent, q.Session, q.Tool, q.Key)
		ruled = ruled || stands != nil && q.CanSay(stands.Allow)
		if wait := conf.Permissions.Timeout; wait > 0 {
			ask.Question.ExpiresAt = l.e.Now().Add(wait)
		}
	})
	l.also = append(l.also, *l.m.Event(channels.ByAgent(conf.Name), ask))
	l.asks = append(l.asks, fact.Ask)
	return ruled, err
}

// cutIn names the arguments of a call that are not here whole. What is written into a file is no part
// of the question who may write it.
func CutIn(fact driver.Fact) (names []string) {
	var event struct {
		Cut []string `json:"cut"`
	}
	if json.Unmarshal(fact.Raw, &event) != nil {
		return nil
	}
	for _, name := range event.Cut {
		if !slices.Contains(contentOf[fact.Tool], name) {
			names = append(names, loop.CutText(name, loop.ActorBytesMax))
		}
	}
	return names
}

// contentOf are the arguments of a tool that a file gets, and that do not say which.
var contentOf = map[string][]string{
	"Write": {"content"}, "Edit": {"old_string", "new_string"}, "MultiEdit": {"edits"}, "NotebookEdit": {"new_source"},
}

// keyOf names a call, so that an answer can stand for the same one: of what writes a file, that file and
// all others that the question names, and where each of them is now, since a link may have come between;
// of a command, everything that it is called with but what is only said of it; of all else, everything.
// Empty: what exactly is asked for is not known.
func KeyOf(call policy.Call, paths []string) string {
	var args map[string]json.RawMessage
	if json.Unmarshal(call.Input, &args) != nil || len(args) == 0 {
		return ""
	}
	about := []string{call.Tool, call.Dir}
	text := func(name string) (s string, ok bool) {
		ok = json.Unmarshal(args[name], &s) == nil && s != ""
		return s, ok
	}
	switch call.Tool {
	case "Write", "Edit", "MultiEdit", "NotebookEdit", "Read":
		path, ok := text("file_path")
		if other, is := text("notebook_path"); !ok && is {
			path, ok = other, is
		}
		if !ok {
			return ""
		}
		for _, path := range append([]string{path}, slices.Sorted(slices.Values(paths))...) {
			about = append(about, path, endOf(call.Dir, path))
		}
	case "other": // a program that does not say which tool it is
		return ""
	default:
		if call.Tool == "Bash" { // where it runs and with which variables makes it another one
			if _, ok := text("command"); !ok {
				return ""
			}
			delete(args, "description")
			delete(args, "timeout")
		}
		whole, err := json.Marshal(args) // by name, so that the same call gives the same
		if err != nil {
			return ""
		}
		var plain bytes.Buffer
		if json.Compact(&plain, whole) != nil {
			return ""
		}
		about = append(about, plain.String())
	}
	sum := sha256.Sum256([]byte(strings.Join(about, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// endOf is where a file is when every link is followed.
func endOf(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	f, err := dispatchfolder.Disk{}.Look(path)
	if err != nil {
		return path
	}
	return f.Path
}

// noteQuestion adds to the report what a session says of its questions, of its conversation and of its
// provider. some: there is something to report, and soon.
func (l *Ear) noteQuestion(ctx context.Context, fact *HeldFact) (some bool, err error) {
	if l.m.Run != "" { // a command's own seat asks nobody, and talks to nobody
		return false, nil
	}
	switch fact.Kind {
	case driver.PermissionAsked:
		if l.work != nil {
			return false, nil
		}
		fact.ruled, err = l.raise(ctx, fact.Fact)
		return true, err
	case driver.ToolCalled:
		if l.work == nil {
			call := l.callIn(fact.Fact)
			if v, _ := l.e.questions.Rules[l.m.Conf.Name].Verdict(call, nil, call.Dir); v.Rule != "" && !v.Allow {
				l.past.called(call, v.Rule)
			}
		}
		return false, nil
	case driver.Listening, driver.Stopped:
		l.past.over()
		return false, nil
	case driver.PermissionWithdrawn:
		l.also = append(l.also, *l.m.Event(channels.ByAgent(l.m.Conf.Name), question.TakeBack{
			Session: l.s.ID, Ask: fact.Ask.ID, Why: "the program does not want to know any more",
		}))
		return true, nil
	case driver.ConversationNamed:
		c := fact.Conversation
		if wanted := l.s.Launch; wanted != nil && wanted.Resume != "" && !c.Resumed && !l.anew {
			l.anew = true
			l.e.log.Warn("a conversation could not be gone on with; a new one was begun", "agent", l.m.Conf.Name, "session", l.s.ID, "conversation", wanted.Resume)
		}
		l.also = append(l.also, *l.m.Event(channels.ByAgent(l.m.Conf.Name), team.ConversationNamed{Session: l.s.ID, Conversed: team.Conversed{
			ID: c.ID, Model: c.Model, Mode: c.Mode, Program: c.Program, Enforced: c.Enforced, Resumed: c.Resumed,
		}}))
		return true, nil
	case driver.RateLimited:
		l.Pending.RateLimit = &team.RateLimit{Until: fact.Until, Why: fact.Text}
		l.limit = l.Pending.RateLimit
		return true, nil
	default:
		return false, nil
	}
}

// unheard tells an agent no where its question could not be taken: it asks more than anybody could
// answer, and would wait for ever.
func (l *Ear) unheard(ctx context.Context, asks []driver.Ask) {
	for _, ask := range asks {
		there := true
		if l.e.View(ctx, func(t *team.Team) { there = t.Questions.Of(l.s.ID, ask.ID) != nil }) != nil || there {
			continue
		}
		l.e.log.Warn("an agent's question was not taken, and is answered with no", "session", l.s.ID, "question", ask.ID)
		conv := l.m.Driver.Converse(sessions.Known(*l.m.Conf), sessions.SessionFor(l.m, l.s), l.proc)
		option, _ := OptionFor(ask.Options, false)
		if err := questions.AnswerWith(ctx, conv, ask.ID, option); err != nil && ctx.Err() == nil && !sessions.IsDone(l.proc) {
			l.e.log.Error("an agent's question could not be answered", "session", l.s.ID, "error", err)
		}
	}
}
