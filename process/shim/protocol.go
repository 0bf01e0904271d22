package shim

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"syscall"
	"time"
)

// protocol is the number of what a daemon and a shim say to each other, and of the records in a session's folder. A
// daemon adopts only shims with its own number, so it is raised whenever an order, an answer or a record changes, and
// only then. Of another protocol these are read: the output, the fence, and in agent.json what EndOther needs. Marks in
// the environment belong to no protocol.
//
// It is a text, because tests build programs of another protocol with -ldflags "-X …/process/shim.protocol=5".
var protocol = "4" //nolint:gochecknoglobals // see above

// ownProtocol is the number that this program speaks.
func ownProtocol() int {
	n, err := strconv.Atoi(protocol)
	if err != nil || n < 1 {
		panic("shim: protocol is not a number: " + protocol)
	}
	return n
}

// OtherProtocol is the error for a session whose shim speaks another protocol than this program, so that it is not
// adopted. Nothing was asked of the shim, and its session goes on.
type OtherProtocol struct {
	ShimPID  int
	Its, Own int
}

func (o *OtherProtocol) Error() string {
	return fmt.Sprintf("its shim (process %d) speaks protocol %d, and this version of Fairlead protocol %d, so it is not adopted",
		o.ShimPID, o.Its, o.Own)
}

// other is nil if the record is of this program's protocol.
func (r *agentRecord) other() *OtherProtocol {
	if r == nil || r.Version == ownProtocol() {
		return nil
	}
	return &OtherProtocol{r.ShimPID, r.Version, ownProtocol()}
}

// lostWhy says why nothing is known of a session's end without its shim.
func (r *agentRecord) lostWhy() string {
	if r.other() != nil {
		return fmt.Sprintf("its shim (process %d) spoke protocol %d and is gone; this version of Fairlead does not read how it ended",
			r.ShimPID, r.Version)
	}
	return fmt.Sprintf("its shim (process %d) was gone without an exit record", r.ShimPID)
}

// otherPatience is how long the shim of an ending session has after the grace, to kill what is left of its tree.
const otherPatience = time.Second

// EndOther ends a session that Adopt refuses with *OtherProtocol. It asks the shim to end its agent with SIGTERM. After
// the grace it kills the shim and the rest of the tree. Nothing of the end is recorded: Adopt finds the session lost.
func EndOther(ctx context.Context, folder string, grace time.Duration) error {
	folder, err := realFolder(folder)
	if err != nil {
		return fmt.Errorf("end a session: %w", err)
	}
	r, err := readAgent(folder)
	switch {
	case err == nil && r == nil:
		err = errors.New("it has no record of its processes; end them by hand")
	case err == nil && r.BootID == bootID():
		if grace > 0 && signalProcess(r.ShimPID, r.ShimStart, syscall.SIGTERM) {
			waitGone(ctx, r.ShimPID, r.ShimStart, grace+otherPatience)
		}
		if err = context.Cause(ctx); err == nil && signalProcess(r.ShimPID, r.ShimStart, syscall.SIGKILL) {
			waitGone(ctx, r.ShimPID, r.ShimStart, sweepPatience)
		}
		if err == nil {
			_, err = endTree(ctx, r)
		}
	}
	if err != nil {
		return fmt.Errorf("end the session in %s: %w", folder, err)
	}
	return nil
}
