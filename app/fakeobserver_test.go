package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/files/agentstate"
)

const sheet = `{"desired_state": "run_once", "current_state": "pause", "timestamp": "2026-01-02T03:04:05.678Z", "setBy": "human", "note": "x"}`

// TestObserverSeesWhatTheWatchSees checks that a dry run reads the same in a workspace as the watch
// of a start.
func TestObserverSeesWhatTheWatchSees(t *testing.T) {
	cases := map[string]func(t *testing.T, dir string){
		"a file":          func(t *testing.T, dir string) { put(t, dir, agentstate.FileName, sheet) },
		"no file":         func(*testing.T, string) {},
		"a broken file":   func(t *testing.T, dir string) { put(t, dir, agentstate.FileName, `{"desired_state": `) },
		"an empty file":   func(t *testing.T, dir string) { put(t, dir, agentstate.FileName, "") },
		"a folder":        func(t *testing.T, dir string) { _ = os.Mkdir(filepath.Join(dir, agentstate.FileName), 0o755) },
		"a symbolic link": func(t *testing.T, dir string) { _ = os.Symlink("/dev/zero", filepath.Join(dir, agentstate.FileName)) },
		"swapped out": func(t *testing.T, dir string) {
			put(t, dir, agentstate.FileName, sheet)
			put(t, dir, swapPrefix+"1", `{"desired_state": "pause"}`)
		},
		"swapped out, the same": func(t *testing.T, dir string) {
			put(t, dir, agentstate.FileName, sheet)
			put(t, dir, swapPrefix+"1", sheet)
		},
	}
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			make(t, dir)
			ctx, cancel := context.WithTimeout(t.Context(), waitMax)
			defer cancel()
			seen, err := DiskObserver{}.File(ctx, "coder", dir)
			watched, now, werr := watch(ctx, t, dir, len(seen))
			if err != nil || werr != nil {
				if err == nil || werr == nil {
					t.Errorf("the observer returns %v, but the watch %v", err, werr)
				}
				return // neither can read it, and both report that
			}
			last := seen[len(seen)-1]
			if last.Kind != now.Kind || last.Sum != now.Sum || last.Ident != now.Ident ||
				last.State.DesiredState != now.State.DesiredState {
				t.Errorf("the observer sees %+v, but the watch %+v", last, now)
			}
			for i := range len(seen) - 1 {
				if w := watched[i]; !w.FromSwap || !seen[i].FromSwap || w.Sum != seen[i].Sum || w.Ident != seen[i].Ident {
					t.Errorf("the observer sees %+v first, but the watch %+v", seen[i], w)
				}
			}
		})
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// watch returns what a real watch delivers from replaced files, and what it reads.
func watch(ctx context.Context, t *testing.T, dir string, most int) (looks []agentstate.Seen, now agentstate.Seen, err error) {
	t.Helper()
	files := agentstate.Watch(slog.New(slog.DiscardHandler))
	defer files.Close()
	arrived := make(chan agentstate.Seen, 64)
	files.Deliver(func(s agentstate.Seen) { arrived <- s })
	if err := files.Add("coder", dir); err != nil {
		t.Fatal(err)
	}
	if now, err = files.Read("coder"); err != nil {
		return nil, now, err
	}
	for len(looks) < most-1 {
		select {
		case s := <-arrived:
			if s.FromSwap {
				looks = append(looks, s)
			}
		case <-ctx.Done():
			t.Fatalf("the watch delivered %d of %d", len(looks), most-1)
		}
	}
	for len(arrived) > 0 {
		if s := <-arrived; s.FromSwap {
			t.Errorf("the watch delivered more: %+v", s)
		}
	}
	return looks, now, nil
}
