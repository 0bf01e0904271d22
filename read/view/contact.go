package view

import (
	"time"

	"github.com/fairlead-dev/fairlead/core/team"
)

// ContactView sums up what an agent's programs had to do with one host of the network.
type ContactView struct {
	Host    string    `json:"host" doc:"NAME, or NAME:PORT"`
	Reached int       `json:"reached" doc:"Number of connections"`
	Refused int       `json:"refused" doc:"Number of connections that were refused, or failed"`
	In      int64     `json:"in" doc:"Bytes that came from it"`
	Out     int64     `json:"out" doc:"Bytes that went to it"`
	First   time.Time `json:"first" doc:"When it was tried first"`
	Last    time.Time `json:"last" doc:"When it was tried last"`
}

// Contacts are an agent's contacts, the newest last.
func Contacts(all []team.Contact) []ContactView {
	shown := make([]ContactView, 0, len(all))
	for _, c := range all {
		shown = append(shown, ContactView(c))
	}
	return shown
}

// OpenedPort is an address outside of a session at which a port of it is reached.
type OpenedPort struct {
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Port    int    `json:"port" doc:"In the session"`
	URL     string `json:"url" doc:"Opens the port in a browser, once; afterwards the browser has a cookie"`
	Address string `json:"address" doc:"Where that browser reaches it, as long as the session runs"`
}
