package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/work/sessions"
)

// asksForever asks the model again and again, and says how each call ended: with curl's code, and the last word of the answer.
const asksForever = `i=0
until test -e end; do
	i=$((i+1))
	curl -sSN --max-time 300 -H "x-api-key: $ANTHROPIC_API_KEY" "$ANTHROPIC_BASE_URL/v1/messages?i=$i" > answer 2> fault
	echo "$i $? $(tail -n 1 answer)" >> results
done
`

const streamedKey = "sk-ant-the-real-key"

// streamer is a model whose answers stop in the middle until the test goes on.
type streamer struct {
	half  chan int      // the number of a call of which half is sent
	goOn  chan struct{} // lets it send the rest
	mu    sync.Mutex
	wrong []string
	began map[int]time.Time
}

func (m *streamer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i, err := strconv.Atoi(r.URL.Query().Get("i"))
	m.mu.Lock()
	m.began[i] = time.Now()
	if r.URL.Path != "/v1/messages" || err != nil || r.Header.Get("X-Api-Key") != streamedKey {
		m.wrong = append(m.wrong, fmt.Sprintf("%s with the key %q", r.URL, r.Header.Get("X-Api-Key")))
	}
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	for n := range 20 {
		fmt.Fprintf(w, "data: %d %s\n\n", n, strings.Repeat("word ", 100))
		_ = http.NewResponseController(w).Flush()
		if n == 10 {
			select {
			case m.half <- i:
			case <-r.Context().Done():
				return
			}
			select {
			case <-m.goOn:
			case <-r.Context().Done():
				return
			}
		}
	}
	fmt.Fprint(w, "data: done\n")
}

// TestKillsDuringAnswers kills the daemon and the proxy in turns in the middle of a model's answers. Without the daemon no call fails.
// The call during which the proxy is killed fails; the next one is served by the next proxy, and with the key.
func TestKillsDuringAnswers(t *testing.T) {
	t.Parallel()
	if a := sandbox.Abilities(); !a.Network {
		t.Skipf("there is no network of a view here: %v", a.Why)
	}
	model := &streamer{half: make(chan int), goOn: make(chan struct{}), began: map[int]time.Time{}}
	server := httptest.NewServer(model)
	defer server.Close()
	s := newRig(t, map[string]string{
		"coder/.keep": "", "claude": asksForever,
		"fairlead.yaml": "version: 1\nagents:\n  coder:\n    {driver: exec, workspace: coder, command: [sh, ../claude], sandbox: workspace, network: [model],\n" +
			"      env: {ANTHROPIC_API_KEY: " + streamedKey + ", ANTHROPIC_BASE_URL: " + quoted([]string{server.URL}) + "}}\n",
	})
	folder := sessions.ProxyFolder(filepath.Join(s.dir, ".fairlead"))
	proxy := func() int {
		c, err := wire.Connect(t.Context(), folder, wire.RoleWatcher, wire.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.PID
	}
	t.Cleanup(func() { _ = syscall.Kill(proxy(), syscall.SIGTERM) })
	s.must("once", "coder")
	half := func() int {
		t.Helper()
		select {
		case i := <-model.half:
			return i
		case <-time.After(rigWait):
			t.Fatal("no call arrives")
			return 0
		}
	}
	result := func(i int) (code int, last string) {
		t.Helper()
		wait.Until(t, fmt.Sprintf("the end of call %d", i), func() bool {
			text, _ := os.ReadFile(filepath.Join(s.dir, "coder", "results"))
			for line := range strings.Lines(string(text)) {
				n := 0
				if _, err := fmt.Sscan(line, &n, &code); err == nil && n == i {
					last = strings.TrimSpace(line)
					return true
				}
			}
			return false
		})
		return code, last
	}
	whole := func(i int) {
		t.Helper()
		if code, line := result(i); code != 0 || !strings.HasSuffix(line, "data: done") {
			t.Errorf("call %d failed: %s", i, line)
		}
	}
	var back []time.Duration
	for range testsize.Pick(2, 3, 30) {
		i := half()
		s.kill()
		model.goOn <- struct{}{}
		whole(i)
		i = half() // without a daemon
		model.goOn <- struct{}{}
		whole(i)
		i = half()
		s.up()
		model.goOn <- struct{}{}
		whole(i)

		i = half()
		before := proxy()
		killed := time.Now()
		if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if code, line := result(i); code == 0 {
			t.Errorf("call %d was whole, although the proxy was killed: %s", i, line)
		}
		next := i
		for next == i || model.at(next).Before(killed) {
			next = half()
		}
		back = append(back, model.at(next).Sub(killed))
		if after := proxy(); after == before {
			t.Error("it is the same proxy")
		}
		for n := i + 1; n < next; n++ { // what was asked meanwhile has failed or waited, and has reached nothing
			if code, line := result(n); code == 0 {
				t.Errorf("call %d passed without a proxy: %s", n, line)
			}
		}
		model.goOn <- struct{}{}
		whole(next)
	}
	slices.Sort(back)
	t.Logf("the first call after a proxy was killed arrived after %v (of %d: %v to %v)", back[len(back)/2], len(back), back[0], back[len(back)-1])
	if len(model.wrong) > 0 {
		t.Error(model.wrong)
	}
	i := half()
	s.put("coder/end", "")
	model.goOn <- struct{}{}
	whole(i)
}

func (m *streamer) at(i int) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.began[i]
}
