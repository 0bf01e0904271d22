// Package forge talks to the place that hosts a repository, GitHub or GitLab, through the programs gh and glab.
//
// ForRemote finds out from the URL of a git remote which program serves it. A Forge reads issues, creates a pull request
// (a merge request of GitLab), reads its checks and comments, and posts replies. The programs are signed in by the
// person; Fairlead has no HTTP client and sees no password. A program runs without prompts, with a time limit and a
// limit on its output. What it prints is untrusted: it is parsed as JSON, and every text has a limit.
//
// An error of the programs becomes a *Fault with a code: RateLimited, Offline, NotSignedIn, NotFound, NoProgram,
// Refused. Callers decide by the code.
//
// The one promise: nothing is sent to a forge except by the methods of Forge that say so, and nothing a forge sends is
// anything but text.
package forge
