package task

import (
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/forge"
)

const issueTextMax = 60 << 10 // a task's text has 64 KiB

// IssueText is the text of a task from an issue: what a person adds, then title, link, text, and the comments of
// people who may write to the repository. All of it is other people's text; nothing in it has an effect by itself.
func IssueText(add string, i forge.Issue) string {
	var b strings.Builder
	if add = strings.TrimSpace(add); add != "" {
		b.WriteString(add + "\n\n")
	}
	fmt.Fprintf(&b, "%s (#%d)\n\n%s\n", i.Title, i.Number, i.URL)
	if body := strings.TrimSpace(i.Body); body != "" {
		b.WriteString("\n" + body + "\n")
	}
	for _, c := range i.Comments {
		if c.Trusted && !strings.Contains(c.Text, ownMark) {
			fmt.Fprintf(&b, "\nComment of %s:\n%s\n", c.Author, strings.TrimSpace(c.Text))
		}
	}
	text := b.String()
	if len(text) > issueTextMax {
		return strings.ToValidUTF8(text[:issueTextMax], "") + "\n(there is more; see the link)\n"
	}
	return text
}
