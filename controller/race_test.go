//go:build race

package controller

// raced says that the race detector looks on: everything takes five to ten times as long, and
// a crowd is smaller.
const raced = true
