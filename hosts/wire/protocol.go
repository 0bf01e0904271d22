package wire

import (
	"fmt"
	"strconv"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// protocol is the number of what a leader and a host say to each other: the routes, the JSON of bodies and headers, and
// the arguments with which launches start the program fairlead of the host. A leader takes only hosts with its own
// number, so it is raised whenever one of these changes, and only then.
//
// It is a text, because tests build programs of another protocol with -ldflags "-X …/hosts/wire.protocol=6".
var protocol = "5" //nolint:gochecknoglobals // see above

// Protocol is such a number.
type Protocol int

// Own is the protocol that this program speaks.
func Own() Protocol {
	n, err := strconv.Atoi(protocol)
	if err != nil || n < 1 {
		panic("wire: protocol is not a number: " + protocol)
	}
	return Protocol(n)
}

func (p Protocol) String() string { return strconv.Itoa(int(p)) }

// ProtocolsApart says why a leader does not take a host with another protocol, and what to do. its is empty if the host
// names none that can be read.
func ProtocolsApart(host, its string, leaders Protocol) string {
	if its == "" {
		its = "none"
	}
	return fmt.Sprintf("host %s speaks protocol %s and the leader protocol %s; install the same version of Fairlead on both", host,
		clip.Text(its, 20), leaders)
}
