package cluster

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

// Members says which hosts belong to the team at this moment. A removed host does not. It is asked for every
// connection, from several goroutines.
type Members interface {
	Member(name string) (m Member, ok bool)
}

// MembersFunc is a function as Members.
type MembersFunc func(name string) (Member, bool)

// Member calls the function.
func (f MembersFunc) Member(name string) (Member, bool) { return f(name) }

// PayloadMax is the size of a message in bytes that every server of a cluster must take: one append of the
// journal is one message, and the default of NATS, 1 MiB, is too small for it.
const PayloadMax = 8 << 20

// The leases are a key-value bucket. NATS keeps that as a stream, with a subject for each key.
const (
	LeaseBucket   = "fairlead-leases"
	LeaseStream   = "KV_" + LeaseBucket
	LeaseSubjects = "$KV." + LeaseBucket + "."
)

// The subjects. What follows a host's name is about it alone.
const (
	JournalSubject = "fairlead.journal"
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

// Permissions are the subjects that a member may use, with the wildcards of NATS. A denied one is not allowed,
// even if an allowed one covers it.
type Permissions struct {
	Publish, NoPublish, Subscribe []string
}

// Permissions derives what a member may do. It may also answer each request that it received, once.
func (m Member) Permissions() Permissions {
	own := Permissions{
		Publish: []string{
			hostSubjects + m.Name + ".>",
			LeaseSubjects + m.Name + ".*",
			"$JS.API.STREAM.INFO." + LeaseStream,
			"$JS.API.DIRECT.GET." + LeaseStream + "." + LeaseSubjects + m.Name + ".*",
		},
		Subscribe: []string{toSubjects + m.Name + ".>", InboxPrefix(m.Name) + ".>"},
	}
	if m.Role != Engine {
		return own
	}
	own.Publish = append(own.Publish, JournalSubject, toSubjects+">", LeaseSubjects+">", "$JS.API.>", "$JS.ACK.>", "$JS.FC.>")
	own.NoPublish = []string{ // what is stored is not taken away by a message
		"$JS.API.STREAM.DELETE.>", "$JS.API.STREAM.PURGE.>", "$JS.API.STREAM.MSG.DELETE.>",
		"$JS.API.STREAM.RESTORE.>", "$JS.API.SERVER.>", "$JS.API.ACCOUNT.>",
	}
	own.Subscribe = append(own.Subscribe, JournalSubject, hostSubjects+">")
	return own
}
