package questions

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/core/question"
	"github.com/fairlead-dev/fairlead/read/view"
)

// yesNo has the words for an answer to a permission.
var yesNo = map[string]bool{"yes": true, "y": true, "allow": true, "no": false, "n": false, "deny": false}

// AnswerAsked answers one question and prints what was answered.
func AnswerAsked(ctx context.Context, a *cli.App, client *apiclient.Client, id, word string, answer view.QuestionAnswer) error {
	asked, err := client.Questions.Show(ctx, id)
	if err != nil {
		return cli.Faulty(err)
	}
	if err := ChooseAnswer(&answer, asked, word); err != nil {
		return err
	}
	done, err := client.Questions.Answer(ctx, id, answer)
	if err != nil {
		return cli.Faulty(err)
	}
	return a.Say(map[string]any{"seq": done.Seq, "id": id, "allow": answer.Allow, "option": answer.Option, "scope": answer.Scope},
		"%s of %s %s", cli.Plain(id), cli.Plain(asked.Agent), SaidAnswer(asked, answer))
}

// ChooseAnswer turns a person's word into an answer to the question. An option with that name takes
// precedence over yes and no.
func ChooseAnswer(answer *view.QuestionAnswer, asked view.QuestionView, word string) error {
	if o, ok := byLabel(asked, word); ok {
		word = o.ID
	}
	for _, o := range asked.Options {
		if word != "" && o.ID == word {
			answer.Option = o.ID
			if asked.Kind != string(question.Permission) {
				answer.Allow = true
				return nil
			}
			says, known := saysYes(o)
			if !known && answer.Scope != string(question.Once) {
				return &cli.Coded{
					Code: cli.ExitUsage,
					Err:  fmt.Errorf("it is unknown whether %q is a yes, so the answer cannot be saved; answer without --for, or say yes or no", word),
				}
			}
			answer.Allow = says
			return nil
		}
	}
	allow, plainly := yesNo[strings.ToLower(word)]
	switch {
	case word == "":
		answer.Allow = true
		if asked.Kind == string(question.Permission) {
			return &cli.Coded{
				Code: cli.ExitUsage,
				Err:  fmt.Errorf("%s asks for permission: say yes or no (`fairlead answer %s yes`)", asked.ID, asked.ID),
			}
		}
		return nil
	case plainly && asked.Kind == string(question.Permission):
		answer.Allow = allow
		return nil
	}
	offered := []string{}
	if asked.Kind == string(question.Permission) {
		offered = append(offered, "yes", "no")
	}
	for _, o := range asked.Options {
		words := cli.Plain(o.ID)
		if o.Label != "" && o.Label != o.ID && asked.Kind != string(question.Permission) {
			words += " (" + cli.Line(o.Label, cli.StepWidth) + ")"
		}
		offered = append(offered, words)
	}
	if asked.FreeText {
		offered = append(offered, "--text with your own words")
	}
	return &cli.Coded{
		Code: cli.ExitUsage,
		Err:  fmt.Errorf("%s does not accept the answer %q; it accepts %s", asked.ID, word, strings.Join(offered, ", ")),
	}
}

// byLabel returns the option of a question in words whose text is the person's word, if no option has that name and
// only one has that text. Options of permissions are named only, because a text may be misleading.
func byLabel(asked view.QuestionView, word string) (found view.OptionView, ok bool) {
	if word = strings.TrimSpace(word); word == "" || asked.Kind == string(question.Permission) {
		return found, false
	}
	for _, o := range asked.Options {
		switch {
		case o.ID == word:
			return view.OptionView{}, false
		case !strings.EqualFold(strings.TrimSpace(o.Label), word):
		case ok:
			return view.OptionView{}, false
		default:
			found, ok = o, true
		}
	}
	return found, ok
}

// saysYes reports whether an option of a permission allows the call, and whether that is known. An
// unknown option counts as a yes unless it is called no, because choosing it may have an effect.
func saysYes(o view.OptionView) (yes, known bool) {
	switch {
	case strings.HasPrefix(o.Kind, "allow"):
		return true, true
	case strings.HasPrefix(o.Kind, "reject"):
		return false, true
	}
	allow, plainly := yesNo[strings.ToLower(o.ID)]
	return allow || !plainly, plainly
}

// SaidAnswer describes an answer.
func SaidAnswer(asked view.QuestionView, answer view.QuestionAnswer) string {
	said := "is answered"
	switch {
	case asked.Kind == string(question.Permission) && answer.Allow:
		said = "is allowed"
	case asked.Kind == string(question.Permission):
		said = "is denied"
	case answer.Option != "":
		said = "is answered: " + cli.Plain(answer.Option)
		for _, o := range asked.Options {
			if o.ID == answer.Option && o.Label != "" {
				said = "is answered: " + cli.Line(o.Label, cli.ErrorWidth)
			}
		}
	}
	switch question.Scope(answer.Scope) {
	case question.Session:
		said += ", as is " + likeWords(asked.Tool) + " in " + cli.Plain(asked.Session)
	case question.Always:
		said += ", as is " + likeWords(asked.Tool) + " from now on; `fairlead question saved` lists the saved answers"
	case question.Once:
	}
	return said
}

// likeWords says for which calls a saved answer applies.
func likeWords(tool string) string {
	switch tool {
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return "every change of the same file"
	}
	return "every call exactly like it"
}

// PrintSavedAnswers prints the saved answers.
func PrintSavedAnswers(a *cli.App, list []view.SavedAnswerView) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(a.Out, "no saved answers; save one with `fairlead answer ID yes --for session` or `--for always`")
		return err
	}
	table := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSAYS\tAGENT\tFOR\tTOOL\tCALL\tBY\tSINCE")
	for _, s := range list {
		says, until := "no", "always"
		if s.Allow {
			says = "yes"
		}
		if s.Session != "" {
			until = cli.Plain(s.Session)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s ago\n", s.ID, says, cli.Plain(s.Agent), until, cli.OrDash(cli.Line(s.Tool, 30)),
			cli.Line(cli.CallWords(s.Call), 60), cli.Line(s.By, 30), cli.Ago(max(0, time.Since(s.At))))
	}
	return table.Flush()
}
