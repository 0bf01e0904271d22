// Package shell starts a person's program in the view of an agent or of a task.
//
// The daemon says what the view has (view.Shell). The program runs here, as a child of the command, so its exit code and its streams
// are the command's own. On a terminal it gets one of its own, and what is typed and shown is copied: so it has job control, and no
// program in the view gets hold of the person's terminal. It ends with the command, however that ends, and with it everything in the view.
//
// The one promise: the program runs in the view that the daemon named, or it does not run.
package shell
