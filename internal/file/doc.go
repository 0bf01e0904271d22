// Package file holds what the packages for files of other programs share: access to files without
// following links, atomic replacement, strict JSON, and YAML with line and column.
//
// Files are opened relative to an open folder, by plain names, because an agent may replace any
// path component in its workspace at any time. Version is a file's content and identity at one
// moment. Exchange swaps two files atomically, so that the replaced content can still be read.
//
// Content and YAMLFormat report the first fault with its place, limit size and depth, and keep
// the order of fields.
//
// The one promise: no function follows a symbolic link, blocks on a pipe, or reads more than its
// limit.
package file
