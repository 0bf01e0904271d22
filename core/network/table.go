package network

// Row is the answer about one kind of name and port, where the rules say one thing about it.
type Row struct {
	ID     string
	Answer Answer
	Reason Reason
	Why    string
}

// wanted is what kind of name and port a connection is for.
type wanted int

const (
	publicWeb  wanted = iota // a public name at 443 or 80
	publicPort               // a public name at another port
	localName                // a name that the public DNS does not have
	address                  // an address
	oddName                  // no name, or one that programs read in different ways
	wanteds
)

// said is the most that the rules say about a name and a port.
type said int

const (
	closed  said = iota // network: none
	nothing             // they do not have it
	open                // network: all, and they do not have it
	covered             // a host of the tables or a pattern has it
	named               // a person named it
	saids
)

// table has a row for each pair. It is an array, because each program would fill a map at its start.
var table = [wanteds][saids]Row{
	publicWeb: {
		closed:  {ID: "A1", Answer: Refused, Reason: NoNetwork, Why: "a person decided it for the whole agent, so none is asked again"},
		nothing: {ID: "A2", Answer: Ask, Reason: NotListed},
		open:    {ID: "A3", Answer: Allowed},
		covered: {ID: "A4", Answer: Allowed},
		named:   {ID: "A5", Answer: Allowed},
	},
	publicPort: {
		closed:  {ID: "A6", Answer: Refused, Reason: NoNetwork},
		nothing: {ID: "A7", Answer: Refused, Reason: OtherPort, Why: "mail, shells and databases are no web"},
		open:    {ID: "A8", Answer: Refused, Reason: OtherPort},
		covered: {ID: "A9", Answer: Allowed, Why: "a pattern with a port, which a person wrote"},
		named:   {ID: "A10", Answer: Allowed},
	},
	localName: {
		closed:  {ID: "A11", Answer: Refused, Reason: NoNetwork},
		nothing: {ID: "A12", Answer: Refused, Reason: LocalName, Why: "a look-up would tell the local network the name"},
		open:    {ID: "A13", Answer: Refused, Reason: LocalName},
		covered: {ID: "A14", Answer: Refused, Reason: LocalName},
		named:   {ID: "A15", Answer: Allowed},
	},
	address: {
		closed:  {ID: "A16", Answer: Refused, Reason: NoNetwork},
		nothing: {ID: "A17", Answer: Refused, Reason: LiteralName, Why: "no name says whose host it is"},
		open:    {ID: "A18", Answer: Refused, Reason: LiteralName},
		covered: {ID: "A19", Answer: Refused, Reason: LiteralName},
		named:   {ID: "A20", Answer: Allowed},
	},
	oddName: {
		closed:  {ID: "A21", Answer: Refused, Reason: NoNetwork},
		nothing: {ID: "A22", Answer: Refused, Reason: OddName},
		open:    {ID: "A23", Answer: Refused, Reason: OddName},
		covered: {ID: "A24", Answer: Refused, Reason: OddName, Why: "resolvers read it in different ways, so what was judged is not what is reached"},
		named:   {ID: "A25", Answer: Refused, Reason: OddName, Why: "ParseHost takes no such name, so no person meant it"},
	},
}
