package spool

import (
	"errors"
	"io"
	"io/fs"
	"testing"
	"testing/synctest"
)

// A reader gets what is there, waits for more, and ends with the output, or when it is closed.
func TestReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s Spool
		if _, err := s.Write([]byte("hello ")); err != nil {
			t.Fatal(err)
		}
		text := make(chan string, 1)
		go func() {
			all, err := io.ReadAll(s.Reader(t.Context(), 3))
			if err != nil {
				t.Error(err)
			}
			text <- string(all)
		}()
		closed, ended := s.Reader(t.Context(), 99), make(chan error, 1)
		go func() {
			_, err := closed.Read(make([]byte, 8))
			ended <- err
		}()
		synctest.Wait()
		closed.Close()
		if err := <-ended; !errors.Is(err, fs.ErrClosed) {
			t.Error(err)
		}
		_, _ = s.Write([]byte("world"))
		synctest.Wait()
		select {
		case got := <-text:
			t.Fatalf("it ended before the output: %q", got)
		default:
		}
		s.End()
		s.End()
		if got := <-text; got != "lo world" || s.Len() != 11 {
			t.Errorf("%q, %d", got, s.Len())
		}
	})
}
