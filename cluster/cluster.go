package cluster

import "strconv"

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

	Incarnation uint64 // as machine/host has it; 0: none yet. It renews only the lease of this one
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

// The subjects. What follows a host's name is about it alone.
const (
	JournalSubject = JournalStream + ".batch"
	hostSubjects   = "fairlead.host." // published by the host
	toSubjects     = "fairlead.to."   // published by engine hosts
)

// EventSubject is where a host reports what happened on it.
func EventSubject(name string) string { return hostSubjects + name + ".event" }

// AskSubject is where a host asks the leader, for example whether a session may start.
func AskSubject(name string) string { return hostSubjects + name + ".ask" }

// CertificateSubject is where a host asks for its next certificate.
func CertificateSubject(name string) string { return hostSubjects + name + ".certificate" }

// OutputSubject is where a host sends the output of a session.
func OutputSubject(name, session string) string { return hostSubjects + name + ".output." + session }

// PlacedSubject is what an engine host sends to a host: sessions that are placed on it, and orders about them.
func PlacedSubject(name string) string { return toSubjects + name + ".placed" }

// InboxPrefix is where a host receives answers.
func InboxPrefix(name string) string { return "_INBOX." + name }

// Subjects are those on which a plain host receives messages of engine hosts, and on which they receive its own. The incarnation is a number, or
// a wildcard.
func (m Member) Subjects(incarnation string) (hears, says []string) {
	lease := LeaseSubjects + m.Name + "." + incarnation
	return []string{toSubjects + m.Name + ".>"},
		[]string{hostSubjects + m.Name + ".>", lease, "$JS.API.STREAM.INFO." + LeaseStream, "$JS.API.DIRECT.GET." + LeaseStream + "." + lease}
}

// Permissions are the subjects that a member may use, with the wildcards of NATS. A denied one is not allowed,
// even if an allowed one covers it.
type Permissions struct {
	Publish, NoPublish, Subscribe []string

	Answer bool // each request that it received, once
}

// Permissions derives what a member may do. A plain host receives orders and reports events. It answers no requests.
func (m Member) Permissions() Permissions {
	hears, says := m.Subjects(strconv.FormatUint(m.Incarnation, 10))
	own := Permissions{Publish: says, Subscribe: append(hears, InboxPrefix(m.Name)+".>")}
	if m.Role != Engine {
		return own
	}
	own.Publish = append(own.Publish, JournalSubject, "$O."+JournalStream+"-snapshots.>", toSubjects+">", LeaseSubjects+">", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>")
	own.NoPublish = []string{"$JS.API.SERVER.>", "$JS.API.ACCOUNT.>"}
	own.Answer = true
	for _, stream := range []string{JournalStream, LeaseStream} { // no message takes away what they have, by mistake; an engine host has the files themselves
		for _, what := range []string{"DELETE.", "PURGE.", "MSG.DELETE.", "RESTORE."} {
			own.NoPublish = append(own.NoPublish, "$JS.API.STREAM."+what+stream)
		}
	}
	own.Subscribe = append(own.Subscribe, hostSubjects+">")
	return own
}
