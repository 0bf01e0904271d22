// Package logins takes tokens that a session has refreshed to the person's file, and those that the person has refreshed to the
// sessions.
//
// [Watch] looks at a login when one of its two files changes, and at all of them each half minute, in case a change was missed.
// What a session writes that is no token is not taken: package files/login decides that, and Watch says it once.
//
// The one promise: a refresh in a session is in the person's file a moment later, also while the session runs.
package logins
