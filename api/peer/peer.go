package peer

import (
	"fmt"
	"net"
	"os"
	"regexp"
)

// SocketName matches the file names of daemon sockets.
var SocketName = regexp.MustCompile(`^d-[0-9a-f]{16}$`)

// otherUser says that a connection is somebody else's.
type otherUser struct{ uid int }

func (s *otherUser) Error() string {
	return fmt.Sprintf("the other end of the socket belongs to user %d, not to %d", s.uid, os.Getuid())
}

// SameUser asks the kernel whose the other end is. Root is let in: it cannot be kept out.
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
