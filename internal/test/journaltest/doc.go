// Package journaltest is the conformance suite for journals, and a journal that fails on request.
//
// To test a backend, call [Run]. To test code that uses a journal, wrap the journal in [Faulty] and
// choose when it fails.
//
// The one promise: two backends that pass cannot be distinguished through the interface.
package journaltest
