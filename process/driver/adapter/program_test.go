package adapter_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// hang waits forever; the runtime never reports a deadlock for a process that listens for a signal.
func hang() {
	never := make(chan os.Signal, 1)
	signal.Notify(never, syscall.SIGUSR1)
	for {
		<-never
	}
}

const programVerb = "__program"

// The program's input and output.

var programInput = bufio.NewReaderSize(os.Stdin, 64<<10)

func out(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func read() (m plainMessage) {
	line, err := programInput.ReadBytes('\n')
	if err != nil {
		os.Exit(0)
	}
	_ = json.Unmarshal(line, &m)
	return m
}

func answer(m plainMessage) { out(`{"id":%q,"result":"done"}`, m.ID) }

// program runs an agent program. Most of its behavior was observed in real programs.
func program(mode string) {
	switch mode {
	case "echo": // repeats its prompt
		for {
			m := read()
			text, _ := json.Marshal("you said: " + m.Text)
			out(`{"say":%s}`, text)
			answer(m)
		}
	case "asks":
		m := read()
		out(`{"ask":"q1","text":"may I?"}`)
		out(`{"say":"answered %s"}`, read().Result)
		answer(m)
	case "noise":
		fmt.Fprintln(os.Stderr, "a warning")
		out("plain words\n\n   \n[1,2]\n{half an object\n{\"say\":\"a\xff\\nb\"}")
		answer(read())
	case "long": // a line of many MiB
		m := read()
		out(`{"say":"%s"}`, strings.Repeat("x", longBytes()))
		answer(m)
	case "fast": // 5,000 updates at once
		m := read()
		for i := range 5000 {
			out(`{"say":"%d\n"}`, i)
		}
		answer(m)
	case "twice":
		m := read()
		answer(m)
		answer(m)
		read()
	case "environment":
		m := read()
		for _, name := range []string{"FAIRLEAD_MCP_TOKEN", "FAIRLEAD_MCP_URL", "FAIRLEAD_AGENT", "OF_THE_AGENT"} {
			out(`{"say":"%s=%s\n"}`, name, os.Getenv(name))
		}
		dir, _ := os.Getwd()
		out(`{"say":"%d arguments in %s\n"}`, len(os.Args), dir[strings.LastIndex(dir, "/")+1:])
		answer(m)
	case "token": // prints a secret
		m := read()
		fmt.Fprintln(os.Stderr, "my token is secret-4711")
		out(`{"say":"secret-4711"}`)
		answer(m)
	}
	dying(mode)
	os.Exit(0)
}

// dying runs programs that end abnormally.
func dying(mode string) {
	switch mode {
	case "half": // ends in the middle of a line
		read()
		fmt.Print(`{"say":"whole"}` + "\n" + `{"say":"hal`)
		fmt.Fprint(os.Stderr, "first\nout of memory")
		os.Exit(3)
	case "silent": // never answers, and reacts only to signals
		read()
		out(`{"say":"wait"}`)
		hang()
	case "pid": // prints its PID, and ignores the end of its input
		out(`{"say":"%d"}`, os.Getpid())
		hang()
	case "deaf": // never answers or reads, and ignores SIGTERM
		signal.Ignore(syscall.SIGTERM)
		out(`{"say":"wait"}`)
		hang()
	case "liar": // ends with exit code 0 and without an answer
		read()
		os.Exit(0)
	case "killed":
		read()
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "left": // leaves a process behind that holds its output
		m := read()
		c := exec.Command("sleep", "5")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		_ = c.Start()
		answer(m)
	case "left dead": // the same, without an answer
		read()
		c := exec.Command("sleep", "5")
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		_ = c.Start()
		out(`{"say":"last words"}`)
	case "relaunched": // runs as its own child
		c := exec.Command(os.Args[0], programVerb, "echo")
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
		_ = c.Run()
	case "unread": // reads nothing and writes a lot
		for range 4000 {
			out(`{"say":"%s"}`, strings.Repeat("z", 100))
		}
		answer(plainMessage{ID: "1"})
		hang()
	}
}

// longBytes is the longest line that was observed. Under the race detector, which needs fifty times the memory, it is smaller.
func longBytes() int {
	if testsize.Race {
		return 2 << 20
	}
	return 11 << 20
}
