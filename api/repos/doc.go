// Package repos finds the daemons of this user by their sockets, and asks each for a summary.
//
// Any program of this user can put a socket into the folder, so nothing that comes from one is trusted: the user at the
// other end is checked before a byte is sent, an answer has a time and a size, it is parsed strictly, and the folder in it
// must be the one that the socket is named after. A socket without a good answer is listed with what is wrong.
//
// The one promise: a socket that hangs, lies or floods costs two seconds and one line of the list.
package repos
