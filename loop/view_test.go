package loop

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/fairlead-dev/fairlead/team"
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
