package loop

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/fairlead-dev/fairlead/core/team"
)

// Who has given up waiting is not looked for: when look returns, what it was to do was done, or
// never is.
func TestLookIsOverWhenItReturns(t *testing.T) {
	for name, taken := range map[string]bool{"before the loop took it": false, "while the loop is at it": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &Loop{queue: make(chan Request, 1), quit: make(chan struct{})}
				ctx, giveUp := context.WithCancel(t.Context())
				release, over, returned := make(chan struct{}), false, make(chan error, 1)
				go func() {
					returned <- l.View(ctx, func(*team.Team) {
						<-release
						over = true
					})
				}()
				req := <-l.queue
				if taken {
					go req.Look(nil)
				}
				synctest.Wait()
				giveUp()
				synctest.Wait()
				if taken {
					select {
					case <-returned:
						t.Fatal("look returned while it was being carried out")
					default:
					}
					close(release)
				}
				if err := <-returned; err == nil || over != taken {
					t.Fatalf("look says %v, and was carried out: %v", err, over)
				}
				if !taken {
					req.Look(nil)
				}
				if over != taken {
					t.Fatal("it was carried out after look had returned")
				}
			})
		})
	}
}

// Until checks its condition at once and after each published batch, and never in between; a batch
// that is published during a check is not missed. It ends with its context, and with the loop.
func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Loop{queue: make(chan Request, 1), quit: make(chan struct{}), ring: newRing()}
		go func() {
			for req := range l.queue {
				l.read(req)
			}
		}()
		defer close(l.queue)
		checks, at := 0, 3
		returned := make(chan error, 1)
		begin := func(ctx context.Context) {
			go func() {
				returned <- l.Until(ctx, func(*team.Team) bool {
					if checks++; checks == 1 {
						l.ring.publish(nil) // during the check
					}
					return checks >= at
				})
			}()
			synctest.Wait()
		}
		begin(t.Context())
		if checks != 2 {
			t.Fatalf("%d checks, want the first and one for the batch during it", checks)
		}
		l.ring.publish(nil)
		if err := <-returned; err != nil || checks != 3 {
			t.Fatalf("%d checks, %v; want 3", checks, err)
		}
		at = 1000
		ctx, cancel := context.WithCancel(t.Context())
		begin(ctx)
		cancel()
		if err := <-returned; err == nil {
			t.Error("Until returned without an error when its context ended")
		}
		begin(t.Context())
		close(l.quit)
		l.ring.close(ErrClosed)
		if err := <-returned; err == nil {
			t.Error("Until returned without an error when the loop stopped")
		}
	})
}
