// Command daemon is `fairlead up` with a socket over which internal/test/walks clears and writes the coverage counters.
//
// Its one argument is the path of the socket. A connection carries one line: "clear", or the folder into which the
// counters are written. The answer is "ok", or the error. Build it with -cover and -covermode=atomic.
//
// The one promise: when "ok" arrives, the counters are cleared, or in that folder.
package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"runtime/coverage"
	"strings"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/cli/daemon"
	"github.com/fairlead-dev/fairlead/process/driver/script"
	"github.com/fairlead-dev/fairlead/process/shim"
)

func main() {
	shim.Intercept()
	script.Intercept()
	socket, err := net.Listen("unix", os.Args[1])
	if err == nil {
		go serve(socket)
		a := &cli.App{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
		err = daemon.Up(context.Background(), a, daemon.UpOptions{NoBrowser: true, Listen: "127.0.0.1:0"})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "daemon:", err)
		os.Exit(1)
	}
}

func serve(socket net.Listener) {
	for {
		conn, err := socket.Accept()
		if err != nil {
			return
		}
		line, err := bufio.NewReader(conn).ReadString('\n')
		if err == nil {
			err = count(strings.TrimSpace(line))
		}
		said := "ok"
		if err != nil {
			said = err.Error()
		}
		fmt.Fprintln(conn, said)
		conn.Close()
	}
}

func count(line string) error {
	if line == "clear" {
		return coverage.ClearCounters()
	}
	if err := coverage.WriteCountersDir(line); err != nil { // first: the daemon goes on working
		return err
	}
	return coverage.WriteMetaDir(line)
}
