package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/fairlead-dev/fairlead/hosts/wire"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/shim"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// Routes registers the routes of sessions.
func (s *Sessions) Routes(mux *http.ServeMux) {
	route(mux, "POST "+wire.SessionRoute, s, func(ctx context.Context, id string, r *http.Request) (any, error) {
		var in wire.StartIn
		if err := s.read(r, &in); err != nil {
			return nil, err
		}
		if in.Token.Session != id {
			return nil, bad("the lease is of another session")
		}
		return s.start(ctx, id, in)
	})
	route(mux, "POST "+wire.AdoptRoute, s, func(ctx context.Context, id string, r *http.Request) (any, error) {
		var in wire.AdoptIn
		if err := s.read(r, &in); err != nil {
			return nil, err
		}
		return s.adopted(ctx, id, in.Epoch)
	})
	route(mux, "POST "+wire.InputRoute, s, func(ctx context.Context, id string, r *http.Request) (any, error) {
		var in wire.InputIn
		if err := s.read(r, &in); err != nil {
			return nil, err
		}
		return s.order(ctx, id, r, func(_ *session, proc *process) error { return input(ctx, proc, in) })
	})
	route(mux, "POST "+wire.CloseInputRoute, s, func(ctx context.Context, id string, r *http.Request) (any, error) {
		return s.order(ctx, id, r, func(_ *session, proc *process) error {
			if err := proc.CloseInput(ctx); !errors.Is(err, shim.ErrEnded) {
				return err
			}
			return nil
		})
	})
	route(mux, "POST "+wire.EndRoute, s, func(ctx context.Context, id string, r *http.Request) (any, error) {
		var in wire.EndIn
		if err := s.read(r, &in); err != nil {
			return nil, err
		}
		grace := time.Duration(in.GraceMS) * time.Millisecond
		out, err := s.order(ctx, id, r, func(_ *session, proc *process) error { return proc.End(ctx, grace) })
		if other, is := errors.AsType[*sessionhost.NotAdopted](err); is && in.Ordered {
			return struct{}{}, other.End(ctx, min(grace, orderWithin/2)) // it waits that long
		}
		return out, err
	})
	route(mux, "POST "+wire.AckRoute, s, func(ctx context.Context, id string, r *http.Request) (any, error) {
		return s.order(ctx, id, r, func(one *session, proc *process) error {
			if err := proc.Ack(ctx); err != nil {
				return err
			}
			one.proc.Store(nil) // it is done; what still reads its output reads on
			if err := s.leave(id); err != nil {
				s.Log.Warn("the temporary folder of a session could not be removed", "session", id, "error", err)
			}
			return nil
		})
	})
	route(mux, "GET "+wire.EvidenceRoute, s, func(ctx context.Context, id string, r *http.Request) (proof any, err error) {
		_, err = s.order(ctx, id, r, func(_ *session, proc *process) (err error) {
			proof, err = proc.Evidence(ctx)
			return err
		})
		return proof, err
	})
	route(mux, "GET "+wire.EndedRoute, s, s.ended)
	route(mux, "GET "+wire.LeaseRoute, s, func(_ context.Context, id string, _ *http.Request) (any, error) {
		l, err := s.readLease(id)
		if err == nil && l == nil {
			err = errNotHere
		}
		if err != nil {
			return nil, err
		}
		return wire.LeaseOut{Token: l.Token}, nil
	})
	mux.HandleFunc("GET "+wire.OutputRoute, s.output)
}

// route answers requests about one session. What changes a session continues if the connection breaks: the leader sends the
// request again and then finds what it has done.
func route(mux *http.ServeMux, pattern string, s *Sessions, answer func(context.Context, string, *http.Request) (any, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if r.Method != http.MethodGet {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), orderWithin)
			defer cancel()
		}
		id := r.PathValue("id")
		if !shim.IsSession(id) {
			wire.Fail(w, bad("that is no name of a session"))
			return
		}
		out, err := answer(ctx, id, r)
		if err != nil {
			s.Log.Debug("a request of the leader was refused", "route", pattern, "session", id, "error", err)
			wire.Fail(w, err)
			return
		}
		wire.Answer(w, out)
	})
}

func bad(why string) error { return &wire.Problem{Code: wire.BadRequest, Why: why} }

// read reads a body. Bodies are limited in number, too.
func (s *Sessions) read(r *http.Request, into any) error {
	defer s.bodies.Add(-1)
	if s.bodies.Add(1) > bodiesMax {
		return busy("this host reads %d requests, which is the limit", bodiesMax)
	}
	return wire.ReadRequest(r, into)
}

// epochOf is the epoch of the leader that sent a request.
func epochOf(r *http.Request) (uint64, error) {
	epoch, err := strconv.ParseUint(r.Header.Get(wire.EpochField), 10, 64)
	if err != nil {
		return 0, bad("the request needs the leader's epoch in " + wire.EpochField)
	}
	return epoch, nil
}

// process is what the shim of a session holds, for a leader of this epoch.
func (s *Sessions) process(ctx context.Context, id string, one *session, epoch uint64) (*process, error) {
	if err := s.Guard.Epoch(epoch); err != nil {
		return nil, err
	}
	proc, err := s.adopt(ctx, id, one, epoch)
	switch {
	case err != nil:
		return nil, err
	case proc == nil || proc.found == sessionhost.NeverStarted:
		return nil, errNotHere
	}
	return proc, nil
}

// order carries out a leader's order about a process.
func (s *Sessions) order(ctx context.Context, id string, r *http.Request, do func(*session, *process) error) (any, error) {
	epoch, err := epochOf(r)
	if err != nil {
		return nil, err
	}
	return struct{}{}, s.with(ctx, id, func(one *session) error {
		proc, err := s.process(ctx, id, one, epoch)
		if err != nil {
			return err
		}
		return do(one, proc)
	})
}

// now returns a session's process for a request that waits, or reads.
func (s *Sessions) now(ctx context.Context, id string, r *http.Request) (proc *process, err error) {
	_, err = s.order(ctx, id, r, func(_ *session, is *process) error {
		proc = is
		return nil
	})
	return proc, err
}

func (s *Sessions) adopted(ctx context.Context, id string, epoch uint64) (out wire.AdoptOut, err error) {
	err = s.with(ctx, id, func(one *session) error {
		proc, err := s.process(ctx, id, one, epoch)
		if errors.Is(err, errNotHere) {
			out.Found = sessionhost.NeverStarted // and it never is by an earlier epoch, which is refused from now on
			return nil
		}
		if err != nil {
			return err
		}
		if out.Found = proc.found; out.Found == sessionhost.Running && isDone(proc) {
			out.Found = sessionhost.Exited
			if end, err := proc.Ended(ctx); err != nil || end.Lost {
				out.Found = sessionhost.Lost
			}
		}
		status := statusOf(proc.Process)
		out.Status = &status
		return nil
	})
	return out, err
}

// input writes what of the input was not written before.
func input(ctx context.Context, proc *process, in wire.InputIn) error {
	writer, is := proc.Process.(sessionhost.InputWriter)
	if !is || proc.found != sessionhost.Running { // how much was written before is not known
		return fmt.Errorf("%w: it has ended", driver.ErrNoInput)
	}
	at, label := writer.Input()
	written := at - in.Offset
	switch length := int64(len(in.Bytes)); {
	case in.Offset < 0 || written < 0:
		return bad(fmt.Sprintf("the input begins at byte %d, and %d were written so far", in.Offset, at))
	case written > length, written == length && in.Label != "" && in.Label != label && length > 0:
		return bad(fmt.Sprintf("%d bytes of other input were written at its offset", written))
	case written == length && length > 0:
		return nil // by an earlier request
	}
	return writer.SendAs(ctx, in.Label, in.Bytes[written:])
}

// ended waits for the end of a session.
func (s *Sessions) ended(ctx context.Context, id string, r *http.Request) (any, error) {
	for {
		proc, err := s.now(ctx, id, r)
		if err != nil {
			return nil, err
		}
		select {
		case <-proc.Done():
			end, err := proc.Ended(ctx)
			if errors.Is(err, shim.ErrClosed) {
				continue // it was closed meanwhile; its record is read again, or the daemon of this host stops
			}
			return end, err
		case <-proc.replaced: // perhaps for another leader, whose epoch refuses this one
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// output sends a session's output from an offset on. With the leader's epoch it follows the session to its end; without, it
// ends where the output ends now.
func (s *Sessions) output(w http.ResponseWriter, r *http.Request) {
	defer s.streams.Add(-1)
	out, err := s.openOutput(r, s.streams.Add(1))
	if err != nil {
		wire.Fail(w, err)
		return
	}
	defer out.Close()
	w.Header().Set("Content-Type", "application/octet-stream")
	flush := http.NewResponseController(w)
	_ = flush.Flush() // the reader waits for the header, and the first byte may come late
	if _, err := io.Copy(flushing{w, flush}, out); err != nil {
		s.Log.Debug("an output was not sent to its end", "session", r.PathValue("id"), "error", err)
		panic(http.ErrAbortHandler) // otherwise it would look like the end
	}
}

func (s *Sessions) openOutput(r *http.Request, streams int64) (io.ReadCloser, error) {
	id := r.PathValue("id")
	offset, err := strconv.ParseInt(r.FormValue("offset"), 10, 64)
	switch {
	case !shim.IsSession(id):
		return nil, bad("that is no name of a session")
	case err != nil || offset < 0:
		return nil, bad("offset is not a number of bytes")
	case streams > streamsMax:
		return nil, busy("this host sends %d outputs, which is the limit", streamsMax)
	}
	var out io.ReadCloser
	if r.Header.Get(wire.EpochField) == "" {
		out, err = s.Shims.Output(r.Context(), id, offset)
	} else {
		var proc *process
		if proc, err = s.now(r.Context(), id, r); err == nil {
			out, err = proc.Output(r.Context(), offset)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNotHere
	}
	return out, err
}

// flushing sends each piece at once.
type flushing struct {
	w     io.Writer
	flush *http.ResponseController
}

func (f flushing) Write(b []byte) (n int, err error) {
	if n, err = f.w.Write(b); err == nil {
		err = f.flush.Flush()
	}
	return n, err
}
