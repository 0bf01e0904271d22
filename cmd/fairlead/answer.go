package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/machine/question"
	"github.com/fairlead-dev/fairlead/view"
)

// words for an answer to a permission.
var yesNo = map[string]bool{"yes": true, "y": true, "allow": true, "no": false, "n": false, "deny": false}

func (a *app) answerAskedVerb() *cobra.Command {
	var text, scope string
	cmd := &cobra.Command{
		Use:   "answer ID [yes|no|OPTION]",
		Short: "Answer a question of an agent",
		Long: `ID is as ` + "`fairlead inbox`" + ` prints it, such as q17. A permission takes yes or no; another question
takes one of its options, or your own text with --text. If the agent offers an option that is itself
called yes or no, that option is meant. The command returns when the answer is on disk; the agent
then receives it.

--for session saves the answer for every identical call until the agent's session ends; --for always,
until ` + "`fairlead question revoke`" + ` deletes it. Two calls are identical if their arguments are the same;
for calls that write files, if they write to the same files.

Agents cannot use this command: only a person can say yes.`,
		Example: `  fairlead answer q17 yes
  fairlead answer q17 no --for session
  fairlead answer q18 --text "use the second schema"`,
		Args: args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, words []string) error {
			if scope != string(question.Once) && scope != string(question.Session) && scope != string(question.Always) {
				return usage(cmd, fmt.Errorf("--for takes once, session or always, not %q", scope))
			}
			answer := view.QuestionAnswer{Text: text, Scope: scope}
			word := ""
			if len(words) == 2 {
				word = words[1]
			}
			if word == "" && text == "" {
				return usage(cmd, errors.New("what is the answer? yes, no, an option, or --text"))
			}
			return a.asking(func(ctx context.Context, client *apiclient.Client, words []string) error {
				return a.answerAsked(ctx, client, words[0], word, answer)
			})(cmd, words)
		},
	}
	cmd.Flags().StringVar(&text, "text", "", "the answer in words, or a word to go with it")
	cmd.Flags().StringVar(&scope, "for", string(question.Once), "how long it stands: once, session or always")
	return cmd
}

func (a *app) answerAsked(ctx context.Context, client *apiclient.Client, id, word string, answer view.QuestionAnswer) error {
	asked, err := client.Question(ctx, id)
	if err != nil {
		return faulty(err)
	}
	if err := chooseAnswer(&answer, asked, word); err != nil {
		return err
	}
	done, err := client.AnswerQuestion(ctx, id, answer)
	if err != nil {
		return faulty(err)
	}
	if a.json {
		return a.printJSON(map[string]any{"seq": done.Seq, "id": id, "allow": answer.Allow, "option": answer.Option, "scope": answer.Scope})
	}
	_, err = fmt.Fprintf(a.out, "%s of %s %s\n", plain(id), plain(asked.Agent), saidAnswer(asked, answer))
	return err
}

// chooseAnswer makes of a person's word what the question takes. An option of that very name goes before
// our own words for it.
func chooseAnswer(answer *view.QuestionAnswer, asked view.QuestionView, word string) error {
	for _, o := range asked.Options {
		if word != "" && o.ID == word {
			answer.Option = o.ID
			if asked.Kind != string(question.Permission) {
				answer.Allow = true
				return nil
			}
			says, known := saysYes(o)
			if !known && answer.Scope != string(question.Once) {
				return &coded{exitUsage, fmt.Errorf("nobody knows whether %q is a yes, so it cannot stand; answer it once, or say yes or no", word)}
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
			return &coded{exitUsage, fmt.Errorf("%s asks for permission: say yes or no (`fairlead answer %s yes`)", asked.ID, asked.ID)}
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
		offered = append(offered, plain(o.ID))
	}
	if asked.FreeText {
		offered = append(offered, "--text with words of your own")
	}
	return &coded{exitUsage, fmt.Errorf("%s takes no answer %q; it takes %s", asked.ID, word, strings.Join(offered, ", "))}
}

// saysYes is whether an option of a permission allows, and whether its kind tells. One of which nobody
// knows counts as a yes, unless it is called no: it was chosen, and something may come of it.
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

func saidAnswer(asked view.QuestionView, answer view.QuestionAnswer) string {
	said := "is answered"
	switch {
	case asked.Kind == string(question.Permission) && answer.Allow:
		said = "is allowed"
	case asked.Kind == string(question.Permission):
		said = "is denied"
	case answer.Option != "":
		said = "is answered: " + plain(answer.Option)
	}
	switch question.Scope(answer.Scope) {
	case question.Session:
		said += ", as is " + likeWords(asked.Tool) + " in " + plain(asked.Session)
	case question.Always:
		said += ", as is " + likeWords(asked.Tool) + " from now on; `fairlead question saved` lists what stands"
	case question.Once:
	}
	return said
}

// likeWords says for which calls an answer stands.
func likeWords(tool string) string {
	switch tool {
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		return "every change of the same file"
	}
	return "every call exactly like it"
}
