package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/cli/offline"
)

// Reader is what a read command asks: the daemon, or the journal if no daemon runs.
type Reader struct {
	*apiclient.Client
	Offline error // why the daemon was not asked; nil: it was
	asOf    time.Time
	close   func() error
}

// Close closes what was opened for reading.
func (r *Reader) Close() error { return r.close() }

// DialToRead finds the daemon. If none runs, or it cannot be reached from inside of a sandbox, the
// journal is read in its place, and standard error says so. The error is a *apiclient.NoDaemon if there is
// no journal either.
func (a *App) DialToRead(ctx context.Context) (*Reader, error) {
	r, err := a.OpenToRead(ctx)
	if err != nil {
		return nil, err
	}
	if r.Offline != nil {
		why := "no daemon runs here"
		if none := (*apiclient.NoDaemon)(nil); !errors.As(r.Offline, &none) {
			why = "the daemon cannot be reached from here"
		}
		fmt.Fprintf(a.Err, "%s; this is from the journal as of %s (%s ago)\n", why, r.asOf.Local().Format(time.DateTime), Ago(Past(r.asOf)))
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
	var none *apiclient.NoDaemon
	switch {
	case err == nil:
		return &Reader{Client: client, close: client.Close}, nil
	case !errors.As(err, &none) && !errors.Is(err, fs.ErrPermission):
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
		return nil, fmt.Errorf("no daemon runs here, and the journal cannot be read: %w", oerr)
	}
	return &Reader{Client: found.Client, Offline: err, asOf: found.AsOf, close: found.Close}, nil
}
