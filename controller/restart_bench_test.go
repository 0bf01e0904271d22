package controller

import (
	"context"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// BenchmarkRestart measures the time from SIGKILL of an agent in continuous to the first byte of
// its next session, beside a bare parent that kills, waits, and starts the same program again. The
// back-off between failed sessions is a millisecond, and included.
func BenchmarkRestart(b *testing.B) {
	const agent = `echo up; exec sleep 1000`
	e, _, _ := benchEngine(b, "version: 1\nagents:\n  coder: {driver: exec, command: [sh, -c, '"+agent+"'], workspace: coder, failures_max: 1000, backoff: {first: 1ms, max: 1ms}}\n")
	ctx := context.Background()
	seq, err := e.Command(ctx, human, "coder", "continuous", "")
	if err != nil {
		b.Fatal(err)
	}
	changes := make(chan int, 64) // the agent's process, sent for each new one
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for ch, err := range e.Changes(watching, seq, "") {
			if err != nil {
				return
			}
			if ch.Row != "S1" {
				continue
			}
			if view, err := e.Agent(watching, "coder"); err == nil && view.Session != nil {
				changes <- view.Session.PID
			}
		}
	}()
	next := func() int {
		select {
		case pid := <-changes:
			return pid
		case <-time.After(waitMax):
			b.Fatal("no session runs")
			return 0
		}
	}
	firstByte := func() {
		view, err := e.Agent(ctx, "coder")
		if err != nil || view.Session == nil {
			b.Fatalf("%+v, %v", view, err)
		}
		out, err := e.Proc(view.Session.ID).Output(ctx, 0)
		if err != nil {
			b.Fatal(err)
		}
		defer out.Close()
		if _, err := out.Read(make([]byte, 1)); err != nil {
			b.Fatal(err)
		}
	}
	pid := next()
	firstByte()
	var restarts, bares []time.Duration
	for b.Loop() {
		bares = append(bares, bareRestart(b, agent))
		began := time.Now()
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			b.Fatal(err)
		}
		pid = next()
		firstByte()
		restarts = append(restarts, time.Since(began))
	}
	b.ReportMetric(median(restarts).Seconds()*1e3, "ms/restart")
	b.ReportMetric(median(bares).Seconds()*1e3, "ms/bare-restart")
	b.ReportMetric(median(restarts).Seconds()/median(bares).Seconds(), "restart/bare-restart")
	b.ReportMetric(0, "ns/op")
}

// bareRestart measures the same with a parent that stores nothing.
func bareRestart(b *testing.B, agent string) time.Duration {
	run := func() *exec.Cmd {
		cmd := exec.Command("sh", "-c", agent)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			_, err = out.Read(make([]byte, 1))
		}
		if err != nil {
			b.Fatal(err)
		}
		return cmd
	}
	end := func(cmd *exec.Cmd) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // an error, because it was killed
	}
	first := run()
	began := time.Now()
	end(first)
	second := run()
	took := time.Since(began)
	end(second)
	return took
}
