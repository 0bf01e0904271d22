// Package questions prints what waits for a person, and turns the words of a person into answers.
//
// Its promise: a word that could mean two answers is refused.
// The flags of the commands are in cmd/fairlead; what all commands share is in package cli.
package questions
