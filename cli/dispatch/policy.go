package dispatch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/rank"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	dispatchctl "github.com/fairlead-dev/fairlead/work/dispatch"
)

// PolicyAsked is a tool call to check.
type PolicyAsked struct{ State, Agent, Tool, Input, Session, Dir string }

// IsObject reports whether a text is one JSON object.
func IsObject(text string) bool {
	var fields map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &fields) == nil && fields != nil
}

// PolicyAnswer is what `fairlead dispatch policy check --json` prints.
type PolicyAnswer struct {
	Decision   string `json:"decision"` // allow, deny or, for an agent, ask
	Reason     string `json:"reason"`
	DelegateTo string `json:"delegate_to"`
	Row        string `json:"row,omitempty"`
	Capability string `json:"capability,omitempty"`
	Session    string `json:"session,omitempty"` // the session whose paths apply
}

// StateNamed returns the state for a name in any case: transitions show names in capitals.
func StateNamed(is dispatch.Dispatch, name string) string {
	if is.Knows(name) {
		return name
	}
	for _, d := range is.Agents {
		if dispatch.Display(d.Name) == name {
			return d.Name
		}
	}
	return name
}

// Judged returns whether a state may make a call in a session, by the rules of the session's own repository
// and, if fairlead.yaml can be read, the bounds that it sets.
func Judged(a *cli.App, found dispatchfolder.Found, state string, call policy.Call) PolicyAnswer {
	conf, err := a.MaybeConfig()
	if err != nil || conf == nil {
		conf = &config.Config{}
	}
	conf.Dir = repoOf(a, found.Folder)
	verdict, delegate := dispatchctl.NewOrders(conf).JudgeDispatch(dispatchctl.Target{Found: found}, state, call)
	answer := PolicyAnswer{
		Decision: "allow", Reason: verdict.Reason, Row: verdict.Row, Capability: verdict.Capability,
		DelegateTo: delegate,
	}
	if !verdict.Allow {
		answer.Decision = "deny"
	}
	if found.Folder != nil {
		answer.Session = found.Folder.Path()
	}
	return answer
}

// PrintVerdict prints whether a state may make a call, and why.
func PrintVerdict(a *cli.App, answer PolicyAnswer, state string, agents int) error {
	text := answer.Decision
	if answer.Row != "" && a.Verbose {
		text += " [" + answer.Row + "]"
	}
	if answer.Reason != "" {
		text += ": " + answer.Reason
	}
	fmt.Fprintln(a.Out, cli.Plain(text))
	if answer.Decision == "allow" || !slices.Contains([]string{dispatch.Main, dispatch.Desk}, state) {
		return nil
	}
	switch {
	case answer.DelegateTo != "":
		text = "delegate it to " + answer.DelegateTo
	case agents == 0:
		text = "no agent is described, so it cannot be delegated; describe one in .claude/agents"
	default:
		text = "no agent's description fits; one could be made in .claude/agents"
	}
	_, err := fmt.Fprintln(a.Out, cli.Plain(text))
	return err
}

// SessionOrNew returns the named session, or a session as it would start now: it then has agents and
// no folder (nil).
func SessionOrNew(a *cli.App, path string) (dispatchfolder.Found, error) {
	if path == "" {
		folder, err := dispatchfolder.Current(a.Dir)
		if err != nil {
			return dispatchfolder.Found{}, err
		}
		if folder == nil {
			orders, err := Orders(a)
			if err != nil {
				return dispatchfolder.Found{}, err
			}
			is, err := orders.NewDispatch()
			return dispatchfolder.Found{Session: is}, err
		}
	}
	return Session(a, path)
}

// kinds say why a term counts, if it is no word of a subject.
var kinds = map[rank.Kind]string{
	rank.AnySubject: " (fits any subject)",
	rank.Pair:       " (one after the other)",
	rank.File:       " (of a file's name)",
	rank.Program:    " (asks for a program, and the agent makes any kind)",
}

// PrintRanking prints which agents match an input, best first, with the terms that matched; explained has a line
// for each of them.
func PrintRanking(a *cli.App, r rank.Ranking, agents int, explained bool) error {
	if agents == 0 {
		_, err := fmt.Fprintln(a.Out, "no agent is described: none in .claude/agents, and none with a description in fairlead.yaml")
		return err
	}
	if len(r.Scores) > 0 {
		w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "AGENT\tSCORE\tBY")
		for _, c := range r.Scores {
			if explained {
				why := ""
				if c.Weak {
					why = "reduced: it shares common words only, or one of many"
				}
				fmt.Fprintf(w, "%s\t%.2f\t%s\n", cli.Line(c.Name, cli.SummaryWidth), c.Score, why)
				for _, t := range c.Terms {
					fmt.Fprintf(w, "\t%.2f\t%s%s\n", t.Score, cli.Line(strconv.Quote(t.Word), cli.SummaryWidth), kinds[t.Kind])
				}
				continue
			}
			terms := make([]string, len(c.Terms))
			for i, t := range c.Terms {
				terms[i] = fmt.Sprintf("%q %.2f", t.Word, t.Score)
			}
			fmt.Fprintf(w, "%s\t%.2f\t%s\n", cli.Line(c.Name, cli.SummaryWidth), c.Score,
				cli.Line(strings.Join(terms, " + "), cli.SummaryWidth))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(a.Out)
	}
	if missing := unshared(r); explained && len(r.Scores) > 0 && len(missing) > 0 {
		fmt.Fprintf(a.Out, "no description shares: %s\n", cli.Line(strings.Join(missing, ", "), cli.SummaryWidth))
	}
	text := "MAIN keeps it: " + cli.Line(r.Reason, cli.ErrorWidth)
	if r.Best != "" {
		text = dispatch.Arrow(dispatch.Main, r.Best) + "  # " + cli.Line(r.Reason, cli.ErrorWidth)
	}
	_, err := fmt.Fprintln(a.Out, cli.Plain(text))
	return err
}

// unshared are the words of a text that no listed agent shares.
func unshared(r rank.Ranking) []string {
	var missing []string
	for _, word := range r.Terms {
		if !slices.ContainsFunc(r.Scores, func(c rank.Candidate) bool {
			return slices.ContainsFunc(c.Terms, func(t rank.Term) bool { return t.Word == word })
		}) {
			missing = append(missing, strconv.Quote(word))
		}
	}
	return missing
}
