// Package caller finds out which process is at the other end of a connection to the daemon, and the
// Fairlead session that it runs in. The token and the user id do not tell an agent from its owner, so
// orders that an agent may not give (X10) are judged by the process.
//
// Over the unix socket the kernel names the process when it connects. Over TCP it is looked up when an
// order needs it: Linux lists the connections and the files that processes have open.
//
// Caller is what was found about the process. Identity is what follows from it for the rules of X10, and its methods are these
// rules.
//
// The one promise: a process that cannot be inspected is reported as unknown, never as a person.
package caller
