package cluster

import (
	"fmt"
	"net"
	"strconv"
)

// Role is what a host is for.
type Role string

const (
	Host   Role = "host"   // it runs sessions
	Engine Role = "engine" // it also runs a server, has the journal, and can lead
)

// Member is a host that belongs to the team.
type Member struct {
	Name string
	Role Role
	Key  string // the public half of its key, an nkey of a user: it begins with U
}

// EngineHost is a host that has the journal and can lead.
type EngineHost struct {
	Name    string `json:"name"`
	Address string `json:"address"` // HOST:PORT at which it listens for other hosts when it leads
	Key     string `json:"key"`     // as of Member
}

// Copy is one of the copies of the journal that the servers of engine hosts keep.
type Copy struct {
	Host    string
	Current bool   // it has all that the others have, as far as is known
	Lag     uint64 // messages that it lacks
}

// EnginesMin is how many engine hosts a team needs for a journal that outlives the loss of one.
const EnginesMin = 3

// Routes is the address of an engine host for the servers of the others: the next port.
func (e EngineHost) Routes() (string, error) {
	on, text, err := net.SplitHostPort(e.Address)
	if err != nil {
		return "", fmt.Errorf("the address of engine host %s: %w", e.Name, err)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 || port == 1<<16-1 {
		return "", fmt.Errorf("the address of engine host %s, %s, needs a port from 1 to 65534, because its server listens on the next one",
			e.Name, e.Address)
	}
	return net.JoinHostPort(on, strconv.FormatUint(port+1, 10)), nil
}

// Members says which hosts belong to the team at this moment. A removed host does not. It is asked for every
// connection, from several goroutines, and must not wait for a node.
type Members interface {
	Member(name string) (m Member, ok bool)
}

// PayloadMax is the size of a message in bytes that every server of a cluster must take: one append of the
// journal is one message, and the default of NATS, 1 MiB, is too small for it.
const PayloadMax = 8 << 20

// JournalStream is the stream of the journal. Its subject and the bucket of its snapshots follow from the name.
const JournalStream = "fairlead-journal"

// The leases are a key-value bucket. NATS keeps that as a stream, with a subject for each key.
const (
	LeaseBucket   = "fairlead-leases"
	LeaseStream   = "KV_" + LeaseBucket
	LeaseSubjects = "$KV." + LeaseBucket + "."
)

// JournalSubject is that of the journal's stream.
const JournalSubject = JournalStream + ".batch"

// InboxPrefix is where a host receives answers.
func InboxPrefix(name string) string { return "_INBOX." + name }

// Permissions are the subjects that an engine host may use, with the wildcards of NATS. A denied one is not allowed,
// even if an allowed one covers it.
type Permissions struct {
	Publish, NoPublish, Subscribe []string
}

// Permissions derives what a member may do with the servers of the team. Only an engine host connects to them.
func (m Member) Permissions() Permissions {
	if m.Role != Engine {
		return Permissions{}
	}
	p := Permissions{
		Publish: []string{
			JournalSubject, "$O." + JournalStream + "-snapshots.>", LeaseSubjects + ">", "$JS.API.>", "$JS.ACK.>",
			"$JS.FC.>",
		},
		NoPublish: []string{"$JS.API.SERVER.>", "$JS.API.ACCOUNT.>"},
		Subscribe: []string{InboxPrefix(m.Name) + ".>"},
	}
	// no message takes away what they have, by mistake; an engine host has the files themselves
	for _, stream := range []string{JournalStream, LeaseStream} {
		for _, what := range []string{"DELETE.", "PURGE.", "MSG.DELETE.", "RESTORE."} {
			p.NoPublish = append(p.NoPublish, "$JS.API.STREAM."+what+stream)
		}
	}
	return p
}
