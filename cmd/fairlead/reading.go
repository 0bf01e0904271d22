package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	apiclient "github.com/fairlead-dev/fairlead/api/client"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/cli/offline"
)

// reader is what a read command asks: the daemon, or the journal where no daemon runs.
type reader struct {
	*apiclient.Client
	offline error // why the daemon was not asked; nil: it was
	asOf    time.Time
	close   func() error
}

func (r *reader) Close() error { return r.close() }

// dialToRead finds the daemon. If none runs, or it cannot be reached from inside of a sandbox, the
// journal is read in its place, and standard error says so. The error is a *apiclient.NoDaemon if there is
// no journal either.
func (a *app) dialToRead(ctx context.Context) (*reader, error) {
	client, err := a.dial()
	var none *apiclient.NoDaemon
	switch {
	case err == nil:
		return &reader{Client: client, close: client.Close}, nil
	case !errors.As(err, &none) && !errors.Is(err, fs.ErrPermission):
		return nil, err
	}
	conf, cerr := a.loadOrNone()
	if cerr != nil {
		return nil, cerr
	}
	found, oerr := offline.Open(ctx, conf, drivers())
	switch {
	case errors.Is(oerr, offline.ErrNoJournal):
		return nil, err
	case oerr != nil:
		return nil, fmt.Errorf("no daemon runs here, and the journal cannot be read: %w", oerr)
	}
	why := "no daemon runs here"
	if none == nil {
		why = "the daemon cannot be reached from here"
	}
	fmt.Fprintf(a.err, "%s; this is from the journal as of %s (%s ago)\n", why, found.AsOf.Local().Format(time.DateTime), ago(past(found.AsOf)))
	return &reader{Client: found.Client, offline: err, asOf: found.AsOf, close: found.Close}, nil
}

// reading is a command that only reads.
func (a *app) reading(do func(ctx context.Context, r *reader, words []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, words []string) (err error) {
		r, err := a.dialToRead(cmd.Context())
		if err != nil {
			return err
		}
		defer func() { err = cmpErr(err, r.Close()) }()
		return do(cmd.Context(), r, words)
	}
}
