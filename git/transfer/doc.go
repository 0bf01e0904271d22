// Package transfer moves the content of a checkout between two repositories on different machines.
//
// Snapshot makes a commit of all files of a checkout. Pack writes the objects that the other side lacks, and Unpack or
// Take reads them: Unpack on the host that works for the leader, where the checkout is a copy, and Take on the leader, where
// a person may have changed it meanwhile. What arrives is checked by git (fsck) and by its size before a ref names it.
// The stream is a pack without refs, so the other side cannot name any.
//
// Files that git ignores, and repositories inside of the checkout, stay where they are and are not carried. A
// submodule is carried as its commit. Line ends are those of each side, as with a commit. No filter runs: git works in a view.
// What is staged arrives unstaged. Other branches and stashes are not carried. After a crash the same call succeeds.
//
// The one promise: no content of a checkout is lost. What an update replaces is in what arrives, or is under refs/fairlead/left/.
package transfer
