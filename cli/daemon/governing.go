package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/offline"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/config/edit"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/engine/loop"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/read/view"
)

// A fairlead.yaml that changed while a sandboxed agent ran that may write it is obeyed only after a person has confirmed the
// difference. Until then the configuration stays in force that was confirmed last: its text is in keptName, and counts if it has the
// sum that the journal holds.

// keptName is the file in .fairlead with the text of the configuration in force.
const keptName = "confirmed.json"

// keptMax bounds that file: fairlead.yaml and each included file have 1 MiB at most, and as JSON a third more.
const keptMax = 64 << 20

// choice is which configuration a daemon has, and which the files hold.
type choice struct {
	dir   string
	found *config.Source // of the files
	kept  *config.Source // of keptName; nil: there is none, or it cannot be read
	yes   string         // the sum that a person has confirmed; empty: none

	in atomic.Pointer[config.Source] // the one in force
}

// withSource is for a daemon that starts again with a configuration that was checked already.
func withSource(in *config.Source) *choice {
	g := &choice{found: in}
	g.in.Store(in)
	return g
}

// readGoverning reads the files of a folder, and the text that is kept.
func readGoverning(dir, yes string) *choice {
	g := &choice{dir: dir, found: config.ReadSource(dir, lookupEnv), yes: yes}
	if b, err := readKept(filepath.Join(dir, ".fairlead", keptName)); err == nil {
		g.kept, _ = config.ParseSource(b, dir, lookupEnv) // nil if it is damaged
	}
	return g
}

func readKept(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > keptMax {
		return nil, errors.New("it is no ordinary file, or too large")
	}
	return os.ReadFile(path)
}

// choose returns the configuration to obey.
func (g *choice) choose(is team.ConfigState) (*config.Source, error) {
	sum := g.found.Sum()
	switch {
	case is.MayObey(sum), g.yes != "" && g.yes == sum:
		return g.found, nil
	case g.yes != "":
		return nil, refused("%s is not what you have confirmed (%s): now it is %s; look at it again", config.FileName, clip.Text(g.yes, 64),
			sum)
	case g.kept != nil && g.kept.Sum() == is.Sum:
		return g.kept, nil
	}
	return nil, refused("%s was changed while an agent ran that may write it, and the text that was confirmed last is not in .fairlead/%s any more. Look at %s, and run `fairlead up --governing %s` if it is what you want", config.FileName, keptName, config.FileName, sum)
}

func refused(format string, args ...any) error {
	return &cli.Coded{Code: cli.ExitRefused, Err: fmt.Errorf(format, args...)}
}

// inForce returns the configuration that a start has to obey, as far as that is known before the journal is open; see atStart. It
// asks the journal only if the files are not those that were confirmed last.
func inForce(ctx context.Context, g *choice) (*config.Source, error) {
	if g.kept == nil || g.kept.Sum() == g.found.Sum() {
		return g.found, nil
	}
	is, err := journaled(ctx, g.dir)
	if err != nil {
		return nil, err
	}
	return g.choose(is)
}

// journaled is what the journal says.
func journaled(ctx context.Context, dir string) (is team.ConfigState, err error) {
	j, done, err := offline.Journal(ctx, dir)
	if errors.Is(err, offline.ErrNoJournal) {
		return is, nil
	}
	if err != nil {
		return is, err
	}
	l := loop.New(ctx, loop.Options{Journal: j, Zone: time.Local})
	if err = l.Replay(ctx); err == nil {
		is = l.State().Governing
	}
	return is, errors.Join(err, done())
}

// atStart compares the configuration that a daemon starts with with what the journal holds, after it was replayed.
func (d *Daemon) atStart(is team.ConfigState) error {
	if d.choice == nil || d.reloadFault != nil {
		return nil //nolint:nilerr // the daemon goes on with what it had
	}
	use, err := d.choice.choose(is)
	if err == nil && use.Conf != nil && use.Conf != d.Conf {
		err = fmt.Errorf("%s was changed while Fairlead started; start it again", config.FileName)
	}
	return err
}

// confirmed is the sum of the configuration that the daemon starts with.
func (d *Daemon) confirmed() string {
	if d.choice == nil || d.reloadFault != nil {
		return ""
	}
	return d.choice.in.Load().Sum()
}

// keep stores the text of the configuration in force.
func (d *Daemon) keep() error {
	if d.confirmed() == "" {
		return nil
	}
	in := d.choice.in.Load()
	text, path := in.Encode(), d.space.Path(keptName)
	if is, err := readKept(path); err == nil && bytes.Equal(is, text) {
		return nil
	}
	if err := file.Replace(path, text, 0o600); err != nil {
		return fmt.Errorf("keep the text of the configuration in force: %w", err)
	}
	return nil
}

// include returns the file to read in place of one that fairlead.yaml includes: a copy of the confirmed text while an agent may have
// changed it.
func (d *Daemon) include(path string) string {
	if d.choice == nil {
		return path
	}
	text, included := d.choice.in.Load().Text(path)
	if !included {
		return path
	}
	open := true
	if err := d.Engine.Loop.View(context.Background(), func(t *team.Team) { open = t.Governing.Open() }); err != nil || !open {
		return path
	}
	copied := d.space.Path("confirmed-" + config.SumOf([]byte(path)) + filepath.Ext(path))
	if err := file.Replace(copied, text, 0o600); err != nil {
		d.log.Error("the confirmed text of a file could not be written, so that file is not used", "file", path, "error", err)
	}
	return copied
}

// governingLook is how often the files are compared while an agent may write them: a person sees the change in the inbox soon.
const governingLook = time.Second

// watchGoverning notices when an agent changes fairlead.yaml, and when no agent can have changed it.
func (d *Daemon) watchGoverning(ctx context.Context) {
	tick := time.NewTicker(governingLook)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if _, err := d.seeGoverning(ctx); err != nil && ctx.Err() == nil {
			d.log.Warn("fairlead.yaml could not be compared with the one in force", "error", err)
		}
	}
}

// lastGoverning compares the files a last time: sessions that have ended change nothing any more. If that fails, the next start asks.
func (d *Daemon) lastGoverning() error {
	ctx, done := context.WithTimeout(context.Background(), governingLook)
	defer done()
	_, _ = d.seeGoverning(ctx)
	return nil
}

// seeGoverning compares the files with the configuration in force, if an agent may have changed them.
func (d *Daemon) seeGoverning(ctx context.Context) (is team.ConfigState, err error) {
	err = d.Engine.Loop.View(ctx, func(t *team.Team) { is = t.Governing })
	if err != nil || d.choice == nil || !is.Open() && is.Found == "" {
		return is, err
	}
	sum := config.ReadSource(d.Conf.Dir, nil).Sum()
	if sum == is.Found && sum != is.Sum {
		return is, nil
	}
	return is, d.Engine.Agents.Governing(ctx, byDaemon, team.ConfigSeen{Sum: sum, Runs: is.Runs})
}

// byDaemon is the actor of what the daemon sees by itself.
var byDaemon = change.Actor{Kind: "engine", ID: "daemon"}

// unconfirmed is what waits for a person, with what changed; nil: nothing does.
func unconfirmed(found, in *config.Source) *view.Unconfirmed {
	if found.Sum() == in.Sum() {
		return nil
	}
	u := &view.Unconfirmed{Sum: found.Sum(), Files: changedFiles(in, found), Diff: sourceDiff(in, found)}
	if found.Err != nil {
		u.Diff = clip.To(fmt.Sprintf("it cannot be loaded as it is: %v\n%s", found.Err, u.Diff), sourceDiffMax)
	}
	return u
}

// waiting is what the inbox shows of a change of fairlead.yaml; nil: there is none.
func (d *Daemon) waiting(found string) *view.Unconfirmed {
	if d.choice == nil {
		return nil
	}
	u := unconfirmed(config.ReadSource(d.Conf.Dir, nil), d.choice.in.Load())
	if u == nil || u.Sum != found { // it is compared again soon
		return nil
	}
	return u
}

// changedFiles are the files that differ. If fairlead.yaml cannot be loaded, it is not known what it includes.
func changedFiles(was, now *config.Source) (names []string) {
	if now.Err != nil {
		return []string{config.FileName}
	}
	texts := map[string]string{}
	for _, f := range was.Files {
		texts[f.Name] = string(f.Text)
	}
	for _, f := range now.Files {
		if before, is := texts[f.Name]; !is || before != string(f.Text) {
			names = append(names, f.Name)
		}
		delete(texts, f.Name)
	}
	for _, f := range was.Files {
		if _, gone := texts[f.Name]; gone {
			names = append(names, f.Name)
		}
	}
	return names
}

const (
	sourceDiffMax = 16 << 10 // bytes of a diff that a person is shown: some screens; the file has the rest
	noDiff        = "the difference cannot be shown; compare %s with .fairlead/" + keptName + " by hand\n"
)

// sourceDiff is the difference of the files, with the secrets of fairlead.yaml hidden.
func sourceDiff(was, now *config.Source) string {
	var all strings.Builder
	for _, name := range changedFiles(was, now) {
		before, after := was.Named(name), now.Named(name)
		if name != config.FileName {
			all.Write(diff.Diff("a/"+name, before, "b/"+name, after))
			continue
		}
		text, err := edit.Diff(before, after)
		if err != nil {
			text = fmt.Sprintf(noDiff, name)
		}
		all.WriteString(text)
	}
	return clip.To(all.String(), sourceDiffMax)
}

// settled is the configuration to start with. On a terminal a person is asked about a change that no person has confirmed.
func settled(ctx context.Context, a *cli.App, yes string) (*choice, *config.Source, error) {
	if err := a.Place(nil); err != nil {
		return nil, nil, err
	}
	g := readGoverning(a.Dir, yes)
	use, err := inForce(ctx, g)
	if err != nil {
		return g, nil, err
	}
	if use == g.kept && use != g.found {
		u := unconfirmed(g.found, use)
		printUnconfirmed(a, u)
		if cli.Tty(a.In) && !a.JSON {
			err := a.Confirm("Obey the changed fairlead.yaml?", "the configuration that was confirmed last stays in force", "")
			if err == nil {
				g.yes, use = u.Sum, g.found
			}
		}
		if use == g.kept && use.Err != nil {
			return g, nil,
				fmt.Errorf("the configuration that was confirmed last stays in force, and cannot be used: %w. Put back what is missing; or change %s, and run `fairlead up --governing %s` with the hash that this command then prints", use.Err, config.FileName, u.Sum)
		}
		if use == g.kept {
			fmt.Fprintf(a.Err,
				"fairlead: the configuration that was confirmed last stays in force until `fairlead reload --governing %s`\n", u.Sum)
		}
	}
	if use.Err != nil {
		if len(use.Files) == 0 {
			_, err := a.Load() // says how to make one
			return g, nil, errors.Join(err)
		}
		return g, nil, use.Err
	}
	g.in.Store(use)
	return g, use, nil
}

// printUnconfirmed shows a change that no person has confirmed.
func printUnconfirmed(a *cli.App, u *view.Unconfirmed) {
	fmt.Fprintf(a.Err, "fairlead: an agent was running that may write these files, and they were changed: %s\n",
		cli.Line(strings.Join(u.Files, ", "), cli.ErrorWidth))
	for line := range strings.Lines(u.Diff) {
		fmt.Fprintln(a.Err, cli.Plain(strings.TrimSuffix(line, "\n")))
	}
}

// notConfirmed refuses to load a change that no person has confirmed.
func notConfirmed(sum string) error {
	return &table.Refusal{
		Subject: config.FileName, Event: "reload", State: "not confirmed", Row: "E6",
		Reason: "it was changed while an agent ran that may write it, so the configuration that was confirmed last stays in force. `fairlead inbox` shows the difference; if you want it, run `fairlead reload --governing " + sum + "`",
	}
}
