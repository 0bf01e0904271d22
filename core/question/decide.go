package question

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Decide returns the changes that an input causes, or a refusal. It returns no change if the
// input says what already holds.
func (b *Questions) Decide(at time.Time, by change.Actor, in Input) ([]change.Change, error) {
	d := &questionDraft{questions: *b, at: at, by: by}
	var err error
	switch in := in.(type) {
	case Ask:
		err = d.ask(in)
	case Answer:
		err = d.answer(in)
	case Cover:
		if q := b.Questions[in.ID]; in.Verdict.Rule != "" && (q == nil || q.CanSay(in.Verdict.Allow)) {
			err = d.moveNamed(in)
		}
	case Hand:
		if q := b.Questions[in.ID]; q == nil || !q.Over() { // the delivery is reported twice after a crash
			err = d.moveNamed(in)
		}
	case TakeBack:
		err = d.takeBack(in)
	case Overtake:
		for _, q := range b.Open(in.Agent) {
			if q.Order != "" {
				err = cmp.Or(err, d.move(*q, TakeBack{Why: "a newer desired state is in force"}))
			}
		}
	case Revoke:
		err = d.revoke(in.ID)
	case Due:
		for _, q := range b.Open("") {
			if !q.ExpiresAt.IsZero() && !at.Before(q.ExpiresAt) {
				err = cmp.Or(err, d.move(*q, in))
			}
		}
	default:
		panic(fmt.Sprintf("question: unknown input: %T", in))
	}
	if err != nil {
		return nil, err
	}
	return d.changes, nil
}

// questionDraft collects changes on a copy to which they are already applied.
type questionDraft struct {
	questions Questions
	at        time.Time
	by        change.Actor
	changes   []change.Change
}

// add adds a change of a question or of a saved answer.
func (d *questionDraft) add(id, row string, from, to State, event Event, body Body) {
	ch := change.Change{
		Machine: "question", Entity: "question/" + id, Row: row, From: string(from), To: string(to), Trigger: string(event),
		At: d.at, Actor: d.by, Body: &body,
	}
	d.changes = append(d.changes, ch)
	d.questions.Apply(ch)
}

// moveNamed applies a row of the table to the question that an input names.
func (d *questionDraft) moveNamed(in Input) error {
	about := in.Subject()
	q := d.questions.Questions[about.Entity]
	if q == nil {
		return refusal(about.Entity, about.Event, None, "", "there is no such question; `fairlead inbox` lists the open ones")
	}
	return d.move(*q, in)
}

// move applies a row of the table to a question.
func (d *questionDraft) move(q Question, in Input) error {
	event, from := in.Subject().Event, cmp.Or(q.State, None)
	rule, err := Table.Look(q.ID, from, event)
	if err != nil {
		if from == Answered || q.Over() {
			return refusal(q.ID, event, from, "", endWords(&q))
		}
		return err
	}
	for _, act := range rule.Do {
		switch act {
		case Keep, LetStand: // the caller does these
		case TakeRule:
			verdict := in.(Cover).Verdict //nolint:forcetypeassert // the event implies the type
			q.Allow, q.Rule, q.By, q.AnsweredAt = verdict.Allow, verdict.Rule, ByRule, d.at
			q.Option = q.optionFor(q.Allow)
		case TakeAnswer:
			answer := in.(Answer) //nolint:forcetypeassert // the event implies the type
			q.Allow, q.Option, q.Text, q.Scope = answer.Allow, answer.Option, answer.Text, answer.Scope
			q.By, q.AnsweredAt = d.by.Name(), d.at
		case TakeDefault:
			q.Allow, q.Option, q.By, q.AnsweredAt = q.Otherwise, q.Default, byTime, d.at
			if q.Kind == Permission {
				q.Allow = q.Allow && q.CanSay(true)
				q.Option = q.optionFor(q.Allow)
			}
		case NoteEnd:
			q.EndedAt = d.at
			if back, is := in.(TakeBack); is {
				q.Ended = line(back.Why)
			}
		}
	}
	q.State = rule.To
	d.add(q.ID, rule.ID, from, rule.To, event, Body{Question: &q})
	if slices.Contains(rule.Do, LetStand) {
		d.saveAnswer(&q)
	}
	return nil
}

const (
	ByRule = "rule" // Question.By of what a rule or a saved answer decided
	byTime = "time"
)

func endWords(q *Question) string {
	switch {
	case q.State == Withdrawn && q.Ended != "":
		return "it can no longer be answered: " + q.Ended
	case q.State == Withdrawn:
		return "it can no longer be answered"
	case q.By == byTime:
		return "no answer came in time, so the default was used"
	case q.By == ByRule:
		return "a rule has answered it: " + q.Rule
	}
	return "it was answered by " + q.By
}

func (d *questionDraft) ask(in Ask) error {
	q := in.Question
	if d.questions.Of(q.Session, q.Ask) != nil {
		return nil
	}
	switch {
	case q.Agent == "" || q.Session == "" || q.Ask == "":
		return refusal(cmp.Or(q.Ask, "a question"), Raised, None, "Q1", "it lacks the agent, the session, or the id")
	case q.Kind != Permission && q.Kind != Asked && !q.Kind.choice():
		return refusal(q.Ask, Raised, None, "Q1", fmt.Sprintf("there is no kind of question %q", clip.Text(string(q.Kind), lineMax)))
	case len(d.questions.Open(q.Agent)) >= openMax && q.Order == "" && in.Verdict.Rule == "":
		return refusal(q.Ask, Raised, None, "Q1",
			fmt.Sprintf("%d questions of %s are open already; answer some, or end its session", openMax, q.Agent))
	}
	q = Question{
		N: d.questions.Asked + 1, ID: id("q", d.questions.Asked+1), Kind: q.Kind, Agent: q.Agent, Session: q.Session, Ask: q.Ask,
		What: line(q.What), Tool: line(q.Tool), Call: clip.Text(q.Call, callMax), Key: q.Key, Why: line(q.Why),
		Paths: lines(q.Paths, pathsMax), Options: options(q.Options), AskedAt: d.at,
		ExpiresAt: q.ExpiresAt, Otherwise: q.Otherwise, Default: q.Default, Order: q.Order, Host: q.Host,
	}
	if q.Kind == Asked {
		q.What = clip.Text(strings.TrimSpace(in.Question.What), textMax)
	}
	if q.Kind != Permission {
		return d.move(q, in)
	}
	verdict := in.Verdict
	// a rule that denies overrides a saved answer
	if s := d.questions.Covering(q.Agent, q.Session, q.Tool, q.Key); s != nil && (verdict.Rule == "" || verdict.Allow) {
		verdict = Verdict{Rule: s.ID, Allow: s.Allow}
	}
	if verdict.Rule != "" && q.CanSay(verdict.Allow) {
		return d.move(q, Cover{Verdict: verdict})
	}
	return d.move(q, in)
}

// CanSay reports whether a plain yes or no can be delivered. A question with several options has no
// plain yes. Neither has a question whose only yes allows more than was asked. A no is always
// possible: if no option says no, the work in progress is stopped.
func (q *Question) CanSay(allow bool) bool { return !allow || q.optionFor(true) != "" }

func lines(list []string, most int) []string {
	var out []string
	for _, s := range list[:min(len(list), most)] {
		out = append(out, line(s))
	}
	return out
}

// options keeps the options that can be named. An id is never shortened, because a shortened id
// would be another id.
func options(list []Option) []Option {
	var out []Option
	for _, o := range list {
		if len(out) < optionsMax && o.ID != "" && len(o.ID) <= lineMax {
			out = append(out, Option{ID: o.ID, Kind: line(o.Kind), Label: line(o.Label)})
		}
	}
	return out
}

func (d *questionDraft) answer(in Answer) error {
	q := d.questions.Questions[in.ID]
	if q == nil || q.State != Open {
		return d.moveNamed(in)
	}
	in.Scope, in.Text = cmp.Or(in.Scope, Once), strings.ToValidUTF8(in.Text, "\uFFFD")
	chosen := slices.IndexFunc(q.Options, func(o Option) bool { return o.ID == in.Option })
	wrong := ""
	switch {
	case len(in.Text) > textMax:
		wrong = fmt.Sprintf("the answer has %d bytes, the limit is %d", len(in.Text), textMax)
	case in.Scope != Once && in.Scope != Session && in.Scope != Always:
		wrong = fmt.Sprintf("the scope of an answer is once, session or always, not %q", clip.Text(string(in.Scope), lineMax))
	case in.Option != "" && chosen < 0:
		wrong = fmt.Sprintf("there is no option %q; use %s", clip.Text(in.Option, lineMax), names(q.Options))
	case q.Kind != Permission && in.Scope != Once:
		wrong = "only the answer to a permission question can be saved"
	case in.Scope != Once && !q.CanSay(in.Allow):
		wrong = "it has no plain yes that could be saved; answer it once"
	case in.Scope != Once && q.Key == "":
		wrong = "the exact call is unknown, so the answer cannot be saved; answer it once"
	case q.Kind.choice() && chosen < 0:
		wrong = "name one of " + names(q.Options)
	case q.Kind == Asked && in.Option == "" && strings.TrimSpace(in.Text) == "":
		wrong = "it asks for text or one of its options; pass --text, or name one of " + names(q.Options)
	}
	if wrong != "" {
		return refusal(q.ID, Replied, q.State, "Q3", wrong)
	}
	if q.Kind == Permission {
		switch says, known := q.says(chosen); {
		case known && says != in.Allow:
			return refusal(q.ID, Replied, q.State, "Q3",
				fmt.Sprintf("the option %q says %s, and the answer %s", in.Option, yesNo(says), yesNo(in.Allow)))
		case !known && chosen >= 0 && in.Scope != Once:
			return refusal(q.ID, Replied, q.State, "Q3",
				fmt.Sprintf("the meaning of the option %q is unknown, so the answer cannot be saved; answer it once", in.Option))
		}
		if in.Option == "" && !q.CanSay(in.Allow) {
			return refusal(q.ID, Replied, q.State, "Q3", "it has no plain yes; name one of "+names(q.Options)+", or answer no")
		}
		if in.Option == "" {
			in.Option = q.optionFor(in.Allow)
		}
	}
	return d.move(*q, in)
}

// says reports whether an option allows, if its kind is known.
func (q *Question) says(option int) (allow, known bool) {
	if option < 0 {
		return false, false
	}
	switch kind := q.Options[option].Kind; {
	case strings.HasPrefix(kind, "allow"):
		return true, true
	case strings.HasPrefix(kind, "reject"):
		return false, true
	}
	return false, false
}

func yesNo(allow bool) string {
	if allow {
		return "yes"
	}
	return "no"
}

func names(list []Option) string {
	ids := make([]string, 0, len(list))
	for _, o := range list {
		ids = append(ids, o.ID)
	}
	return cmp.Or(strings.Join(ids, ", "), "(it names none)")
}

// optionFor chooses the option to deliver for a yes or no. It prefers once over always, because
// Fairlead keeps saved answers itself. It returns an option only if exactly one of a known kind
// fits; an option of an unknown kind may allow more than it says. Empty: no option fits.
func (q *Question) optionFor(allow bool) string {
	kinds := []string{"reject_once", "reject_always"}
	if allow {
		kinds = []string{"allow_once", "allow_always"}
	}
	for _, kind := range kinds {
		for _, o := range q.Options {
			if o.Kind == kind {
				return o.ID
			}
		}
	}
	return ""
}

// saveAnswer applies an answer to later questions and to open ones.
func (d *questionDraft) saveAnswer(q *Question) {
	if q.Scope == Once {
		return
	}
	s := SavedAnswer{
		N: d.questions.Stood + 1, ID: id("s", d.questions.Stood+1), Agent: q.Agent, Tool: q.Tool, Call: q.Call, Key: q.Key,
		Allow: q.Allow, By: q.By, At: d.at, From: q.ID,
	}
	if q.Scope == Session {
		s.Session = q.Session
	}
	// The newest answer applies: it ends saved answers for the same calls.
	own := 0
	for _, old := range d.questions.List() {
		if old.Agent != s.Agent {
			continue
		}
		own++
		if old.Tool == s.Tool && old.Key == s.Key && old.Session == s.Session {
			d.endSaved(old.ID)
			own--
		}
	}
	for _, old := range d.questions.List() { // remove the oldest above the limit
		if own < savedMax {
			break
		}
		if old.Agent == s.Agent {
			d.endSaved(old.ID)
			own--
		}
	}
	d.add(s.ID, "Q3", None, None, Stands, Body{Saved: &s})
	for _, other := range d.questions.Open(q.Agent) {
		if other.Kind != Permission {
			continue
		}
		if c := d.questions.Covering(other.Agent, other.Session, other.Tool, other.Key); c != nil && other.CanSay(c.Allow) {
			if err := d.move(*other, Cover{Verdict: Verdict{Rule: c.ID, Allow: c.Allow}}); err != nil {
				panic("question: an open question cannot be answered: " + err.Error())
			}
		}
	}
}

func (d *questionDraft) endSaved(id string) {
	d.add(id, "Q7", None, None, Revoked, Body{Revoked: id})
}

// takeBack withdraws one question, or all questions of a session with the answers saved for that
// session.
func (d *questionDraft) takeBack(in TakeBack) error {
	if in.ID == "" && in.Ask != "" {
		q := d.questions.Of(in.Session, in.Ask)
		if q == nil || q.Order != "" { // that one is not the program's
			return nil
		}
		in.ID = q.ID
	}
	if in.ID != "" {
		if q := d.questions.Questions[in.ID]; q == nil || q.Over() {
			return nil
		}
		return d.moveNamed(in)
	}
	for _, q := range append(d.questions.Open(""), d.questions.Undelivered("")...) {
		if q.Session == in.Session && q.Order == "" {
			if err := d.move(*q, in); err != nil {
				return err
			}
		}
	}
	for _, s := range d.questions.List() {
		if s.Session != "" && s.Session == in.Session {
			d.endSaved(s.ID)
		}
	}
	return nil
}

func (d *questionDraft) revoke(id string) error {
	if d.questions.Saved[id] == nil {
		return refusal(id, Revoked, None, "Q7", "there is no such saved answer; `fairlead question saved` lists them")
	}
	d.endSaved(id)
	return nil
}
