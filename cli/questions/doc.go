// Package questions prints what waits for a person, and turns the words of a person into answers.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
//
// The one promise: a word that could mean two answers is refused.
package questions
