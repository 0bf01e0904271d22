package peer

import (
	"fmt"
	"net"
	"os"
	"regexp"
)

// SocketName matches the file names of daemon sockets.
var SocketName = regexp.MustCompile(`^d-[0-9a-f]{16}$`)

// otherUser says that a connection belongs to another user.
type otherUser struct{ uid int }

func (s *otherUser) Error() string {
	return fmt.Sprintf("the other end of the socket belongs to user %d, not to %d", s.uid, os.Getuid())
}

// SameUser asks the kernel for the user at the other end. Root is accepted: it cannot be kept out.
func SameUser(c *net.UnixConn) error {
	uid, err := peerUID(c)
	if err != nil {
		return err
	}
	if uid != os.Getuid() && uid != 0 {
		return &otherUser{uid: uid}
	}
	return nil
}
