package dispatchfolder

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/rank"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Judge decides whether a tool call is allowed, by the rules of the agent that Call.AgentID names. That is
// the agent program's own id of its subagent, or, for an agent that the daemon runs, the key of its task
// (Work.Key: conv_002/1/0; task 0 is MAIN). An id without a task is MAIN's. Hooks, drivers, the command line
// and the API all use Judge. If the dispatch has not begun or has ended, everything is allowed (D10).
func Judge(s dispatch.Dispatch, f *Folder, repo string, call policy.Call) policy.Verdict {
	if s.Phase == dispatch.Closed || s.Phase == dispatch.None || s.Phase == "" {
		return policy.Verdict{Allow: true}
	}
	_, main := inCharge(&s, call.AgentID)
	return JudgeAs(s, f, repo, main, call)
}

// JudgeAs is Judge for a known role: MAIN, or an agent. f may be nil: then there is no dispatch folder, the
// rules are the seed's or those of s, and places of files are not checked.
func JudgeAs(s dispatch.Dispatch, f *Folder, repo string, main bool, call policy.Call) policy.Verdict {
	text, otherwise := s.ForAll, policy.AgentRules()
	if main {
		text, otherwise = s.ForMain, policy.MainRules()
	}
	if f == nil {
		return policy.Judge(rulesOf(text, otherwise), main, call, Where(s, nil, repo), Disk{})
	}
	return policy.Judge(f.rulesFrom(string(text), otherwise), main, call, Where(s, f, repo), Disk{})
}

// Narrowed restricts Judge's allowance for an agent with bounds of its own in fairlead.yaml: both must allow
// a call. Nothing is asked in a dispatch, so a call that cannot be decided is denied. workspace is the
// agent's, from which its globs start; paths are those that its question names.
func Narrowed(verdict policy.Verdict, bounds policy.Rules, s dispatch.Dispatch, f *Folder, workspace string, main bool, call policy.Call,
	paths []string,
) policy.Verdict {
	where := Where(s, f, workspace)
	bound := policy.Within(bounds, call, paths, where, Disk{})
	why := bound.Denied
	switch {
	case why != "":
		why = "its own permissions in fairlead.yaml do not allow it: " + why
	case bound.Doubt != "":
		why = "it cannot be determined whether its own permissions in fairlead.yaml allow it: " + bound.Doubt +
			"; use a simpler call, one file or command at a time"
	default:
		return verdict
	}
	verdict.Allow, verdict.Unsure, verdict.Code, verdict.Reason = false, false, policy.DeniedAgent, why
	if main {
		verdict.Code = policy.DeniedMain
	}
	verdict.Row = verdict.Code.Row()
	return verdict
}

// Where returns what package policy must know of a dispatch. f may be nil.
func Where(s dispatch.Dispatch, f *Folder, repo string) policy.Where {
	home, _ := os.UserHomeDir() // none: a path that begins with ~ is not expanded
	where := policy.Where{Repo: repo, Home: home, Model: true, Commits: true, Interactive: s.Mode == dispatch.Interactive}
	if state, err := StateHome(); err == nil {
		where.Protected = []string{filepath.Join(state, "fairlead")}
	}
	if f == nil {
		where.Named = []string{repo}
		return where
	}
	about := f.about()
	where.Repo, where.Session, where.Tools = cmp.Or(repo, about.Repo), f.path, about.Tools
	where.Commits = !about.NoCommits
	if c := s.Open; c != nil {
		where.Outputs, where.Dialogue = strings.TrimRight(f.Workspace(c.N), string(filepath.Separator)), f.DialoguePath(c.N)
		for _, path := range c.Named {
			where.Named = append(where.Named, absolute(path, where.Repo, home))
		}
	}
	return where
}

// absolute resolves a path as a user meant it.
func absolute(path, repo, home string) string {
	if path = InHome(path, home); filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(repo, path)
}

// inCharge is Session.InCharge, which also knows the daemon's task keys.
func inCharge(s *dispatch.Dispatch, caller string) (agent string, main bool) {
	work, ok := dispatch.ActionOf(caller)
	if !ok || s.Host != dispatch.Fairlead {
		return s.InCharge(caller)
	}
	if task, ok := s.Open.Task(work.Task); ok && s.Open.N == work.Conversation {
		return task.Agent, false
	}
	return dispatch.Main, true
}

// rulesFrom parses permissions once.
func (f *Folder) rulesFrom(text string, otherwise policy.Rules) policy.Rules {
	f.mu.Lock()
	defer f.mu.Unlock()
	if rules, ok := f.rules[text]; ok {
		return rules
	}
	rules := rulesOf([]byte(text), otherwise)
	if f.rules == nil {
		f.rules = map[string]policy.Rules{}
	}
	if len(f.rules) < 8 { // MAIN's and the agents'; more only if other programs change them
		f.rules[text] = rules
	}
	return rules
}

// about is what the first line holds besides the setup.
func (f *Folder) about() about {
	d, err := openFolder(f.path)
	if err != nil {
		return about{}
	}
	defer d.close()
	file, err := d.open(stateName, os.O_RDONLY)
	if err != nil {
		return about{}
	}
	defer file.Close()
	first, err := f.firstLine(file)
	if err != nil {
		return about{}
	}
	return first.about
}

// Best ranks a dispatch's descriptions for a text.
func Best(s dispatch.Dispatch, text string) rank.Ranking {
	all := make([]rank.Description, 0, len(s.Agents))
	for _, a := range s.Agents {
		all = append(all, rank.Description{Name: a.Name, Text: a.Text})
	}
	return rank.Rank(text, all)
}

// MatchOf returns which agent a ranking selects, and why; nil: none.
func MatchOf(r rank.Ranking) *dispatch.Match {
	if r.Best == "" {
		return nil
	}
	m := &dispatch.Match{Agent: r.Best}
	for _, c := range r.Scores {
		if c.Name != r.Best {
			continue
		}
		m.Score, m.Terms = c.Score, c.Words()
	}
	return m
}

// unconfinedName marks a session in which a command of MAIN did not run in the sandbox that was asked for.
const unconfinedName = ".unconfined"

// Unconfined reports that the program does not run MAIN's commands in the sandbox: another hook replaced one,
// or the program is too old. MAIN is then held to the small language of package policy.
func (f *Folder) Unconfined() bool {
	_, err := os.Lstat(filepath.Join(f.path, unconfinedName))
	return !errors.Is(err, fs.ErrNotExist)
}

// SetUnconfined records that.
func (f *Folder) SetUnconfined() error {
	if err := os.WriteFile(filepath.Join(f.path, unconfinedName), nil, 0o600); err != nil {
		return fmt.Errorf("record that commands do not run in the sandbox: %w", err)
	}
	return nil
}

const (
	resultSuffix  = ".result.md"
	rankingSuffix = ".ranking.json"
	nameMax       = 255 // bytes of a file name, on common file systems
)

// InboxMessage is a message that was not answered yet.
type InboxMessage struct {
	Name  string // of the file
	Text  string
	Fault string // why it cannot be read; then Text is empty
}

// Inbox returns the unanswered messages of mode response, by name: files *.md and *.txt of inbox/ without a
// NAME.result.md, except the one that is being processed. It returns at most 1000. A message that is too
// long, not text, or a link has its Fault set, so that it can be put aside.
func (f *Folder) Inbox() ([]InboxMessage, error) {
	s, err := f.Session()
	if err != nil {
		return nil, err
	}
	d, err := openFolder(f.path)
	if err != nil {
		return nil, f.notASession(err)
	}
	defer d.close()
	names, err := d.names(inboxName, 10*inboxMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []InboxMessage
	for _, name := range names {
		if !isMessage(name) || slices.Contains(names, beside(name, resultSuffix)) || s.Open != nil && s.Open.Message == name {
			continue
		}
		if len(all) >= inboxMax {
			break
		}
		m := InboxMessage{Name: name}
		if text, whole, err := d.read(inboxName+"/"+name, inboxBytesMax); err != nil {
			m.Fault = err.Error()
		} else if !whole {
			m.Fault = fmt.Sprintf("the message is longer than %d bytes; write its content to a file and name the file", inboxBytesMax)
		} else {
			m.Text = strings.ToValidUTF8(string(trimmed(text)), "\uFFFD")
		}
		all = append(all, m)
	}
	return all, nil
}

// isMessage reports whether a name is a message's. Hidden files are still being written.
func isMessage(name string) bool {
	return !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, resultSuffix) && (path.Ext(name) == ".md" || path.Ext(name) == ".txt")
}

// reply writes the result of a message beside it.
func (p *draft) reply(f *Folder, at time.Time, body *dispatch.Body) error {
	r := body.Reply
	if !plainName(r.Message) {
		return fmt.Errorf("answer the message %q: it is not the name of a file in %s/", r.Message, inboxName)
	}
	done := "completed"
	if !r.OK {
		done = "failed"
	}
	text := fmt.Appendf(nil, "# Result: %s\n\n- Agent: %s\n- Task: %s\n- Time: %s\n- Conversation: %s\n- Outputs: %s\n\n%s\n",
		r.Message, r.Agent, done, at.Local().Format(seedTime), dispatch.ConversationID(body.Conversation),
		f.Workspace(body.Conversation), strings.TrimRight(r.Text, "\n"))
	p.parts = append(p.parts, part{File: inboxName + "/" + beside(r.Message, resultSuffix), Whole: text})
	return nil
}

// aside moves a message that no agent matches into unmatched/, with the ranking.
func (p *draft) aside(a *dispatch.Aside) error {
	if !plainName(a.Message) {
		return fmt.Errorf("put the message %q aside: it is not the name of a file in %s/", a.Message, inboxName)
	}
	if _, err := p.d.mkdir(unmatchedName); err != nil {
		return err
	}
	name := a.Message
	for n := 2; ; n++ { // a file with that name may exist
		mode, err := p.d.kind(unmatchedName + "/" + name)
		if err != nil {
			return err
		}
		if mode == 0 {
			break
		}
		ext := path.Ext(a.Message)
		name = beside(strings.TrimSuffix(a.Message, ext), fmt.Sprintf("_%d%s", n, ext))
	}
	if a.Ranking != "" {
		p.parts = append(p.parts,
			part{File: unmatchedName + "/" + beside(name, rankingSuffix), Whole: []byte(strings.TrimRight(a.Ranking, "\n") + "\n")})
	}
	p.parts = append(p.parts, part{File: inboxName + "/" + a.Message, Move: unmatchedName + "/" + name})
	return nil
}

// beside returns the name of a file that belongs to another one, shortened to what the file system accepts: a
// commit that cannot be applied would block every later one.
func beside(name, suffix string) string {
	const most, whole = 200, nameMax - len("..new") // replace creates a temporary file first
	if len(name)+len(suffix) <= whole {
		return name + suffix
	}
	sum := sha256.Sum256([]byte(name))
	return clip.Within(name, most) + "-" + hex.EncodeToString(sum[:4]) + suffix
}

// plainName reports whether a name is that of a file in this folder.
func plainName(name string) bool {
	return name != "" && len(name) <= nameMax && !strings.HasPrefix(name, ".") && !strings.ContainsAny(name, "/\x00")
}
