package search

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Print searches and prints the results.
func Print(ctx context.Context, a *cli.App, client *cli.Reader, q api.SearchQuery) error {
	page, err := client.Search(ctx, q)
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Status == http.StatusUnprocessableEntity {
		return &cli.Coded{Code: cli.ExitUsage, Err: err}
	}
	switch {
	case err != nil:
		return err
	case a.JSON:
		return a.PrintJSON(page)
	}
	address := ""
	if client.Offline == nil {
		if d, err := workspace.FindDaemon(a.Dir); err == nil {
			address = d.Address + "/"
		}
	}
	for i := range page.Results {
		printResult(a, &page.Results[i], address)
	}
	printState(a, &page, client.Offline != nil)
	return nil
}

// nearly is how many changes the index may be behind without a word: it follows every 2 seconds.
const nearly = 100

func printState(a *cli.App, page *view.SearchPage, offline bool) {
	if len(page.Results) == 0 && page.Stopped == "" {
		fmt.Fprintln(a.Out, "nothing was found")
	}
	if page.Next > 0 && page.Stopped == "" {
		fmt.Fprintln(a.Out, "there is more: use --limit, --since, or another word")
	}
	note := func(format string, args ...any) { fmt.Fprintf(a.Err, "fairlead: "+format+"\n", args...) }
	if page.Stopped != "" {
		note("not everything was searched: %s", page.Stopped)
	}
	is := page.Index
	switch {
	case offline && is.AsOf != nil:
		note("the index is %s old, and %s after it; `fairlead up` brings it up to date", cli.Ago(cli.Past(*is.AsOf)),
			cli.HowMany(is.Behind, "change came", "changes came"))
	case is.Behind > nearly:
		note("the index is being built: %s not in it yet", cli.HowMany(is.Behind, "change is", "changes are"))
	}
	if is.DroppedAt != nil {
		note("the index has reached its limit: text from before %s may be missing in it", is.DroppedAt.Local().Format(time.DateTime))
	}
}

func printResult(a *cli.App, r *view.SearchResult, address string) {
	where := cli.Line(r.Entity, cli.RemarkWidth)
	if r.Part != "" {
		where += " " + cli.Line(r.Part, cli.RemarkWidth)
	}
	fmt.Fprintf(a.Out, "%s  %s, %s ago\n", a.Paint(cli.Bold, where), r.Kind, cli.Ago(cli.Past(r.At)))
	fmt.Fprintln(a.Out, "  "+marked(a, r.Snippet, r.Matches))
	if address != "" {
		fmt.Fprintln(a.Out, "  "+a.Paint(cli.Dim, address+cli.Plain(r.Link)))
	}
}

// marked is a snippet with its matches in bold.
func marked(a *cli.App, snippet string, matches [][2]int) string {
	runes := []rune(snippet)
	var b strings.Builder
	at := 0
	for _, m := range matches {
		if m[0] < at || m[1] < m[0] || m[1] > len(runes) {
			continue
		}
		b.WriteString(cli.Plain(string(runes[at:m[0]])))
		b.WriteString(a.Paint(cli.Bold, cli.Plain(string(runes[m[0]:m[1]]))))
		at = m[1]
	}
	b.WriteString(cli.Plain(string(runes[at:])))
	return b.String()
}
