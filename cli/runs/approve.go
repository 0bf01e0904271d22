package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/questions"
	"github.com/fairlead-dev/fairlead/core/workflow"
	"github.com/fairlead-dev/fairlead/files/workspace"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/read/view"
)

// inputMost is the maximum size of an answer in bytes.
const inputMost = 512 << 10

// ReadInput reads the input of an answer and checks that it is JSON, so that the error can name the
// file.
func ReadInput(a *cli.App, path string) (string, error) {
	in := a.In
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("--input: %w", err)
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, inputMost+1))
	if err != nil {
		return "", fmt.Errorf("--input: %w", err)
	}
	text = file.Unmarked(text)
	var object map[string]json.RawMessage
	switch err := json.Unmarshal(text, &object); {
	case len(text) > inputMost:
		return "", fmt.Errorf("--input %s has more than %d KiB; put large things into a file and name it in the answer", path,
			inputMost>>10)
	case err != nil:
		return "", fmt.Errorf(`--input %s is not a JSON object, as in {"approved": true} (%w)`, path, err)
	case object == nil:
		return "", fmt.Errorf(`--input %s is not a JSON object, as in {"approved": true}`, path)
	}
	return string(text), nil
}

// Answer answers a step that waits for a person. Without a step it is the one of the run that waits.
func Answer(ctx context.Context, a *cli.App, id, step string, answer view.StepAnswer, said string) error {
	client, err := a.Dial()
	if _, ok := errors.AsType[*apiclient.NoDaemon](err); ok {
		return &cli.Coded{
			Code: cli.ExitNoDaemon,
			Err:  fmt.Errorf("%w, or continue the run here with `fairlead run resume %s`, and answer then", err, cli.Plain(id)),
		}
	}
	if err != nil {
		return err
	}
	defer client.Close()
	if answer.Shown, step, err = shown(ctx, a, client, id, step); err != nil {
		return err
	}
	done, err := client.Runs.Answer(ctx, id, step, answer)
	if err != nil {
		return cli.Faulty(err)
	}
	view, err := showAfter(ctx, a, client, id)
	if err != nil {
		return fmt.Errorf("the answer is recorded, but run %s cannot be shown: %w", cli.Plain(id), err)
	}
	if a.JSON {
		return a.PrintJSON(map[string]any{"seq": done.Seq, "run_id": id, "step_id": step, "status": view.Status})
	}
	for _, s := range view.Steps {
		if s.ID == step && s.Status == string(workflow.Waiting) && s.BadInput != "" {
			return &cli.Coded{
				Code: cli.ExitRefused,
				Err:  fmt.Errorf("the answer is not valid, and %s still waits: %s", step, cli.Line(s.BadInput, cli.ErrorWidth)),
			}
		}
	}
	_, err = fmt.Fprintf(a.Out, "%s of run %s %s\n", cli.Plain(step), cli.Plain(id), said)
	return err
}

// showAfter returns a run after a request. A daemon that lives only as long as the run may have ended with it;
// then the run is read from the journal.
func showAfter(ctx context.Context, a *cli.App, client *apiclient.Client, id string) (view.RunView, error) {
	run, err := client.Runs.Show(ctx, id)
	if none := (*apiclient.NoDaemon)(nil); !errors.As(err, &none) {
		return run, err
	}
	reader, err := a.OpenToRead(ctx)
	if err != nil {
		return view.RunView{}, err
	}
	run, err = reader.Runs.Show(ctx, id)
	return run, errors.Join(err, reader.Close())
}

// shown prints what is answered, for a person at a terminal, and returns its identity: if it is changed before the
// answer arrives, the answer is refused. Empty: the step does not wait, and the answer is refused for that. which is the step; without
// one it is the only one that waits.
func shown(ctx context.Context, a *cli.App, client *apiclient.Client, id, step string) (identity, which string, err error) {
	items, err := client.Inbox(ctx)
	if err != nil {
		return "", "", err
	}
	items = slices.DeleteFunc(items, func(item view.InboxItem) bool {
		return item.Run != id || item.Step == "" || item.Question != nil || step != "" && item.Step != step
	})
	switch {
	case len(items) == 0 && step != "":
		return "", step, nil
	case len(items) == 0:
		return "", "", &cli.Coded{
			Code: cli.ExitRefused,
			Err:  fmt.Errorf("no step of run %s waits for a person; `fairlead run show %[1]s` says what it does", cli.Plain(id)),
		}
	case len(items) > 1:
		var steps []string
		for _, item := range items {
			steps = append(steps, cli.Plain(item.Step))
		}
		return "", "", &cli.Coded{
			Code: cli.ExitUsage,
			Err:  fmt.Errorf("several steps of run %s wait for a person; name one of them: %s", cli.Plain(id), strings.Join(steps, ", ")),
		}
	}
	if !a.JSON && cli.Tty(a.Out) {
		if err := questions.PrintInbox(a, items, false); err != nil {
			return "", "", err
		}
		fmt.Fprintln(a.Out)
	}
	return items[0].Shown, items[0].Step, nil
}

// Cancel cancels a run, or one of its steps.
func Cancel(ctx context.Context, a *cli.App, id, step, note string) error {
	view, err := cancelAt(ctx, a, func(ctx context.Context) (*Connection, error) { return connect(ctx, a) }, id, step, note)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.PrintJSON(ended{view.ID, view.Status, view.StateFile})
	}
	if step != "" {
		_, err = fmt.Fprintf(a.Out, "%s of run %s is cancelled; the run is %s\n", cli.Plain(step), cli.Plain(id), view.Status)
		return err
	}
	_, err = fmt.Fprintf(a.Out, "run %s is cancelled\n", cli.Plain(id))
	return err
}

// cancelAt cancels, and waits until no process of it runs. The daemon that it asks may be a `fairlead run`, which ends with its run.
// The next daemon, which is this process if there is no other, then does what is left.
func cancelAt(ctx context.Context, a *cli.App, dial func(context.Context) (*Connection, error), id, step, note string) (view.RunView,
	error,
) {
	const most = 10 // daemons; of several `fairlead run`, each may be the next one
	for tries := 1; ; tries++ {
		h, err := dial(ctx)
		if err != nil {
			return view.RunView{}, err
		}
		run, err := cancelBy(ctx, a, h, id, step, note, tries > 1)
		ended := h.own == nil && tries < most && (apiclient.Away(err) || errors.As(err, new(*apiclient.NoAnswer)))
		lerr := h.leave(ctx, a, err == nil)
		if !ended || lerr != nil || cli.Pause(ctx, cli.DownPoll) != nil {
			return run, errors.Join(err, lerr)
		}
	}
}

// cancelBy cancels with one daemon. asked: another one may have cancelled the run already.
func cancelBy(ctx context.Context, a *cli.App, h *Connection, id, step, note string, asked bool) (view.RunView, error) {
	page, err := h.Journal(ctx, apiclient.JournalQuery{Tail: 1})
	if err != nil {
		return view.RunView{}, err
	}
	after := page.Head
	done, err := h.Runs.Cancel(ctx, id, step, note)
	if err == nil {
		after = done.Seq
	} else if run, serr := h.Runs.Show(ctx, id); !asked || serr != nil || run.Stage != string(workflow.Stopped) {
		return view.RunView{}, err
	}
	held, stop := whileHeld(ctx, a.Dir)
	defer stop()
	for {
		run, err := showAfter(ctx, a, h.Client, id)
		if err != nil || !atIt(run, step) {
			return run, err
		}
		if after, err = h.Next(held, after, func(api.Change) bool { return true }); err != nil { // it waits for a state
			if ctx.Err() == nil && held.Err() != nil {
				err = &apiclient.NoDaemon{Dir: a.Dir, Why: err}
			}
			if run, serr := showAfter(ctx, a, h.Client, id); serr == nil && !atIt(run, step) {
				return run, nil // the daemon ended with the run
			}
			return run, err
		}
	}
}

// whileHeld is a context that ends when no process works on the repository. A stream of changes would wait for a daemon that
// restarts, which a `fairlead run` that has ended does not.
func whileHeld(ctx context.Context, dir string) (context.Context, func()) {
	held, stop := context.WithCancel(ctx)
	go func() {
		for {
			if free, err := workspace.Free(dir); err == nil && free {
				stop()
			}
			if cli.Pause(held, cli.DownPoll) != nil {
				return
			}
		}
	}()
	return held, stop
}

// atIt reports whether a step, or any step, still has a process.
func atIt(run view.RunView, step string) bool {
	return slices.ContainsFunc(run.Steps, func(s view.StepView) bool { return s.Session != "" && (step == "" || s.ID == step) })
}
