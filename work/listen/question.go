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
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/work/questions"
	"github.com/fairlead-dev/fairlead/work/sessions"
	"github.com/fairlead-dev/fairlead/work/turns"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// A permission request is answered by a rule, a saved answer, a person or a timeout. Sessions of a
// dispatch folder follow that folder's rules instead (dispatchListener).

// callIn is a call of this session, with paths relative to its working folder.
func (l *SessionListener) callIn(fact driver.Fact) policy.Call {
	call := CallOf(fact)
	call.Unread = unread(fact)
	call.Dir = l.m.Conf.Workspace
	if l.s.Launch != nil && l.s.Launch.Dir != "" {
		call.Dir = l.s.Launch.Dir
	}
	return call
}

// pastRules are the denied calls that a session made without asking. Some programs do not ask before
// every call, and some report a call before they ask. The list is therefore complete only at the end
// of the answer. It does not say whether a call was carried out, because the program may have rules
// of its own.
type pastRules struct {
	open  map[string]string // by call name: reported, and not asked for yet
	found []string
	more  int
}

func (p *pastRules) called(call policy.Call, rule string) {
	if p.open == nil {
		p.open = map[string]string{}
	}
	if len(p.open) < notesMax {
		p.open[callName(call)] = clip.Text(strings.TrimSpace(call.Tool+" "+questions.Shown(call.Input)), turns.WhyShownMax) + " (" +
			clip.Text(rule, turns.WhyShownMax) + ")"
	}
}

func (p *pastRules) asked(call policy.Call) { delete(p.open, callName(call)) }

// over marks the open calls as made without asking.
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

// words describes the calls made without asking. It is empty if there were none.
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

// callName identifies a call, even if its target is unknown.
func callName(call policy.Call) string {
	if key := KeyOf(call, nil); key != "" {
		return key
	}
	return call.Tool + " " + string(call.Input)
}

// raise adds a session's permission request to the report as a question. ruled means that a rule or
// a saved answer decides it, so no person has to.
func (l *SessionListener) raise(ctx context.Context, fact driver.Fact) (ruled bool, err error) {
	conf := l.m.Conf
	call := l.callIn(fact)
	q := question.Question{
		Kind: question.Permission, Agent: conf.Name, Session: l.s.ID, Ask: fact.Ask.ID, What: fact.Text, Tool: call.Tool,
		Call: questions.CallShown(call.Input), Key: KeyOf(call, fact.Ask.Paths), Paths: fact.Ask.Paths,
		Otherwise: conf.Permissions.Otherwise == config.OtherwiseAllow,
		Why:       questions.NoRule,
	}
	for _, o := range fact.Ask.Options {
		q.Options = append(q.Options, question.Option(o))
	}
	var ask question.Ask
	var doubt string
	rules := questions.PermissionsOf(conf)
	rules.Writable, rules.Network = l.walled(ctx, call.Dir)
	if ask.Verdict, doubt = rules.Verdict(call, fact.Ask.Paths, call.Dir); doubt != "" {
		q.Why, q.Otherwise = questions.InDoubt+doubt, false
	}
	if len(call.Unread) > 0 {
		if q.Key = ""; doubt == "" && ask.Verdict.Rule == "" {
			q.Why = "no rule can judge it, because this is not known completely: " + strings.Join(call.Unread, ", ")
		}
	}
	ask.Question = q
	ruled = ask.Verdict.Rule != "" && q.CanSay(ask.Verdict.Allow)
	l.past.asked(call)
	var tooMany error
	err = l.e.loop.View(ctx, func(t *team.Team) {
		stands := t.Questions.Covering(q.Agent, q.Session, q.Tool, q.Key)
		ruled = ruled || stands != nil && q.CanSay(stands.Allow)
		if wait := conf.Permissions.Timeout; wait > 0 {
			ask.Question.ExpiresAt = l.e.loop.Now().Add(wait)
		}
		if t.Questions.Of(q.Session, q.Ask) == nil { // read again after a restart
			tooMany = l.e.questions.MayAsk(conf.Name, ruled)
		}
	})
	l.asks = append(l.asks, fact.Ask)
	if tooMany != nil { // it is answered with no, and not recorded
		if !l.tooMany {
			l.tooMany = true
			l.e.log.Warn("an agent asks too often; its further questions are answered with no", "session", l.s.ID, "error", tooMany)
		}
		return true, err
	}
	l.also = append(l.also, *l.m.Event(turns.ByAgent(conf.Name), ask))
	return ruled, err
}

// walled are the folders that the session's wall lets its program write, if the trial in it held reading and writing, and whether it
// held the network; see policy.Permissions. A shim that does not answer soon says nothing of its wall, so a person is asked.
func (l *SessionListener) walled(ctx context.Context, dir string) (writable []string, network bool) {
	if !l.m.Conf.Sandbox.On() {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, wallPatience)
	defer cancel()
	proof, err := l.proc.Evidence(ctx)
	if err != nil || !sessions.HoldsFiles(proof) {
		return nil, false
	}
	return append([]string{dir}, l.m.Conf.Sandbox.Write...), sessions.HoldsNetwork(proof)
}

// wallPatience is how long a question waits for the shim's answer about the wall.
const wallPatience = 500 * time.Millisecond

// CutIn names the arguments of a call that are not known completely. The content of a write is ignored,
// because it does not affect the permission.
func CutIn(fact driver.Fact) []string {
	return slices.DeleteFunc(unread(fact), func(name string) bool { return name == "tool" })
}

// unread is CutIn, and contains "tool" if the program does not name the tool.
func unread(fact driver.Fact) (names []string) {
	for _, name := range fact.Cut {
		if !slices.Contains(contentOf[fact.Tool], name) {
			names = append(names, clip.Text(name, loop.ActorBytesMax))
		}
	}
	return names
}

// contentOf lists, by tool, the arguments that hold content rather than a target.
var contentOf = map[string][]string{
	"Write": {"content"}, "Edit": {"old_string", "new_string"}, "MultiEdit": {"edits"}, "NotebookEdit": {"new_source"},
}

// KeyOf identifies a call, so that a saved answer applies to the same call. For a write it is its
// file, if it names one, and all paths of the question, each with its links resolved, because a link may have
// been replaced. For a command it is every argument except the description. For other tools it is
// every argument. The key is empty if the request is not fully known.
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
		files := slices.Sorted(slices.Values(paths)) // all that a patch of several files names
		if ok {
			files = append([]string{path}, files...)
		}
		if len(files) == 0 {
			return ""
		}
		for _, path := range files {
			about = append(about, path, endOf(call.Dir, path))
		}
	case "other": // a program that does not name its tool
		return ""
	default:
		if call.Tool == "Bash" { // the folder and environment of a command are part of its identity
			if _, ok := text("command"); !ok {
				return ""
			}
			delete(args, "description")
			delete(args, "timeout")
		}
		whole, err := json.Marshal(args) // keys are sorted, so the same call gives the same key
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

// endOf is the path of a file with every link resolved.
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

// noteQuestion adds a session's questions, conversation id, texts that it has read and rate limits to the report. some means
// that there is something to report without delay.
func (l *SessionListener) noteQuestion(ctx context.Context, fact *HeldFact) (some bool, err error) {
	if l.m.Run != "" { // a step without an agent has no questions and no conversation
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
			if v, _ := questions.PermissionsOf(l.m.Conf).Verdict(call, nil, call.Dir); v.Rule != "" && !v.Allow {
				l.past.called(call, v.Rule)
			}
		}
		return false, nil
	case driver.Listening, driver.Stopped:
		l.past.over()
		return false, nil
	case driver.PermissionWithdrawn:
		l.also = append(l.also, *l.m.Event(turns.ByAgent(l.m.Conf.Name), question.TakeBack{
			Session: l.s.ID, Ask: fact.Ask.ID, Why: "the program does not want to know any more",
		}))
		return true, nil
	case driver.ConversationNamed:
		c := fact.Conversation
		if wanted := l.s.Launch; wanted != nil && wanted.Resume != "" && !c.Resumed && !l.anew {
			l.anew = true
			l.e.log.Warn("a conversation could not be gone on with; a new one was begun", "agent", l.m.Conf.Name, "session", l.s.ID,
				"conversation", wanted.Resume)
		}
		l.also = slices.DeleteFunc(l.also, func(ev team.Event) bool { // of many in one report, the last one counts
			_, named := ev.What.(team.ConversationNamed)
			return named
		})
		l.also = append(l.also, *l.m.Event(turns.ByAgent(l.m.Conf.Name), team.ConversationNamed{Session: l.s.ID, Conversed: team.Conversed{
			ID: c.ID, Model: c.Model, Mode: c.Mode, Program: c.Program, Enforced: c.Enforced, Resumed: c.Resumed,
		}}))
		return true, nil
	case driver.TextRead:
		n, err := strconv.ParseUint(fact.ID, 10, 64)
		if err != nil {
			return false, nil //nolint:nilerr // no text that was told has this number
		}
		l.also = append(l.also, *l.m.Event(turns.ByAgent(l.m.Conf.Name), team.TellGiven{Session: l.s.ID, N: n}))
		return true, nil
	case driver.RateLimited:
		l.Pending.RateLimit = &team.RateLimit{Until: fact.Until, Why: fact.Text}
		l.limit = l.Pending.RateLimit
		return true, nil
	default:
		return false, nil
	}
}

// unheard denies the requests that exceed the question limit, so that the agent does not wait
// without end.
func (l *SessionListener) unheard(ctx context.Context, asks []driver.Ask) {
	for _, ask := range asks {
		there := true
		if l.e.loop.View(ctx, func(t *team.Team) { there = t.Questions.Of(l.s.ID, ask.ID) != nil }) != nil || there {
			continue
		}
		if !l.tooMany {
			l.e.log.Warn("an agent's question was not taken, and is answered with no", "session", l.s.ID, "question", ask.ID)
		}
		conv := l.m.Driver.Converse(sessions.Known(*l.m.Conf), sessions.SessionFor(l.m, l.s), l.proc)
		option, _ := OptionFor(ask.Options, false)
		if err := questions.AnswerWith(ctx, conv, ask.ID, option); err != nil && ctx.Err() == nil && !sessions.IsDone(l.proc) {
			l.e.log.Error("an agent's question could not be answered", "session", l.s.ID, "error", err)
		}
	}
}
