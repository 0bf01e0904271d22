// Package policy says whether a state may do what it is about to do, and whose work an input is.
//
// Think of a doorkeeper with two lists in his hand. MAIN comes by often and carries little: it
// reads anything, writes notes into the conversation's own folder, and sends for somebody else
// when there is work to be done. An agent comes with its tools and is let through, but not to
// the room where the lists are kept. Nobody is let through on his own word: a path is followed
// through every link to where it really ends, a shell command is taken apart down to the last
// substitution in it, and what the doorkeeper cannot read stays outside when MAIN carries it.
// Whoever is turned away hears what is missing and who has it.
//
// Judge is the doorkeeper. Rules are the list (MainRules and AgentRules are the seed's own), a
// Call is what somebody wants to do, Where is what is known of the session, and a Disk answers
// what only the disk knows. Rank is the porter's book: it holds every agent's description
// against an input, and shows its sums.
//
// Answer is the same doorkeeper at the side door, where an agent program rings before it does
// something: there he has a person's own list of patterns, what to let in and what not, and where
// neither says anything he fetches the person. testdata/rulebook.txt says call by call what comes of it.
//
// Three layers hold what this package says: the hook or the driver that asks it, the sandbox
// below MAIN, and the check of what changed on disk afterwards. It is the first of them and not
// the only one, because it reads words. Of an agent's shell it understands redirects, the usual
// programs that write, and shells within shells; what a program that it does not know will
// write, nobody can tell from its name: such a call is let through to an agent, and the verdict
// says that it was not understood (Unsure), unless something that X10 protects stands among its
// words. Where agents may commit, git checkout and its like can change any tracked file unseen.
//
// In MAIN a list decides: gathering.go and findsed.go hold the commands, git.go those of git,
// each with the flags that change nothing. A parser other than the shell's own reads the command,
// so what shells read in different ways is denied too, and a test lets real shells tell what they
// would run. Some things are taken as given: the shell's aliases and functions, its PATH and the
// user's own git configuration are the user's. The repository's git configuration is read, because
// git runs programs that are named in it: where it names one, MAIN may not ask git. And git
// refreshes its index when it looks: whoever starts MAIN's shell sets GIT_OPTIONAL_LOCKS=0.
//
// The table testdata/calls.txt says call by call what becomes of it; add the ones that you wonder
// about. testdata/inputs.txt does the same for the ranking.
//
// The one promise: in MAIN, what was not understood to the last word is denied.
package policy
