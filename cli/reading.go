package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli/offline"
	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/read/view"
)

// Reader is what a read command asks: the daemon, or the journal if no daemon runs.
type Reader struct {
	*apiclient.Client
	Offline error            // why the daemon was not asked; nil: it was
	Past    view.Past        // what is read is as of then; zero: the daemon knows the present state
	Other   *api.OtherConfig // why this machine does not lead while none does
	close   func() error
}

// Close closes what was opened for reading.
func (r *Reader) Close() error { return r.close() }

// DialToRead finds the daemon. If none runs, it gives no sign, or it cannot be reached from inside of a sandbox, the
// journal is read in its place, and standard error says so. The error is a *apiclient.NoDaemon if there is
// no journal either.
func (a *App) DialToRead(ctx context.Context) (*Reader, error) {
	r, err := a.OpenToRead(ctx)
	if err != nil {
		return nil, err
	}
	if r.Past.AsOf != nil {
		why := "no daemon runs here"
		silent, _ := errors.AsType[*apiclient.Silent](r.Offline)
		switch none := (*apiclient.NoDaemon)(nil); {
		case r.Past.NoLeaderSince != nil:
			why = "no leader of the team answers since " + r.Past.NoLeaderSince.Local().Format(time.DateTime)
		case silent != nil:
			why = silent.Error()
		case !errors.As(r.Offline, &none):
			why = "the daemon cannot be reached from here"
		}
		if r.Other != nil && r.Past.NoLeaderSince != nil {
			why += "; " + OtherConfig(r.Other)
		}
		fmt.Fprintf(a.Err, "%s; this is from the journal as of %s (%s ago)\n", why, r.Past.AsOf.Local().Format(time.DateTime),
			Ago(Past(*r.Past.AsOf)))
	}
	if a.at == "" {
		return r, nil
	}
	at, err := moment(a.at, time.Now())
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.Client = r.AsOf(at)
	return r, nil
}

// OpenToRead is DialToRead without the word on standard error, and as of now.
func (a *App) OpenToRead(ctx context.Context) (*Reader, error) {
	client, err := a.Dial()
	switch {
	case err == nil:
		return a.present(ctx, client)
	case !errors.As(err, new(*apiclient.NoDaemon)) && !errors.As(err, new(*apiclient.Silent)) && !errors.Is(err, fs.ErrPermission):
		return nil, err
	}
	conf, cerr := a.LoadOrNone()
	if cerr != nil {
		return nil, cerr
	}
	found, oerr := offline.Open(ctx, conf, Drivers())
	switch {
	case errors.Is(oerr, offline.ErrNoJournal):
		return nil, err
	case oerr != nil:
		return nil, fmt.Errorf("%w, and the journal cannot be read: %w", err, oerr)
	}
	return &Reader{Client: found.Client, Offline: err, Past: view.Past{AsOf: &found.AsOf}, close: found.Close}, nil
}

// OtherConfig says why an engine host does not lead, and what lets it.
func OtherConfig(is *api.OtherConfig) string {
	leader := Plain(is.Leader)
	text := fmt.Sprintf("this host does not lead, because its %s is not the one with which %s leads or led", config.FileName, leader)
	if is.Ref == "" {
		return text + fmt.Sprintf(", and that one has not arrived here: start Fairlead on %s, or copy the file from there", leader)
	}
	return text +
		fmt.Sprintf(": to let it lead, run `git show %s:%s > %s` in this repository", Plain(is.Ref), config.FileName, config.FileName)
}

// NoLeader says that a host has no leader to ask (exit code 6).
type NoLeader struct{ Since time.Time }

func (n *NoLeader) Error() string {
	return "no leader of the team answers since " + n.Since.Local().Format(time.DateTime) +
		", so nothing new can be followed here; run the command again when another engine host leads, which takes about 15 seconds if most of them run"
}

// present reads from the daemon, if that knows the present state of the team. The daemon of an engine host does not while no
// leader answers it; then its copy of the journal is read.
func (a *App) present(ctx context.Context, client *apiclient.Client) (*Reader, error) {
	r := &Reader{Client: client, close: client.Close}
	if !a.clustered() {
		return r, nil
	}
	is, err := client.Leader(ctx)
	if err != nil || is.NoLeaderSince == nil {
		return r, nil //nolint:nilerr // what is read next has the same error
	}
	r.Past, r.Other = view.Past{AsOf: is.AsOf, NoLeaderSince: is.NoLeaderSince}, is.OtherConfig
	if is.Leads {
		return r, nil
	}
	conf, err := a.LoadOrNone()
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	found, err := offline.Open(ctx, conf, Drivers())
	if err == nil && found.AsOf.IsZero() { // the copy was not begun when the leader was lost
		err = errors.Join(offline.ErrNoJournal, found.Close())
	}
	if errors.Is(err, offline.ErrNoJournal) {
		r.Past = view.Past{}
		return r, nil // the daemon says what is the matter
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("no leader answers, and the journal on this host cannot be read: %w", err), client.Close())
	}
	if r.Past.AsOf == nil || r.Past.AsOf.Before(found.AsOf) {
		r.Past.AsOf = &found.AsOf
	}
	return &Reader{
		Client: found.Client, Offline: &NoLeader{*is.NoLeaderSince}, Past: r.Past, Other: r.Other,
		close: func() error { return errors.Join(found.Close(), client.Close()) },
	}, nil
}
