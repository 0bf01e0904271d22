package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/core/notice"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// hostile is a message whose texts try all that services would render.
func hostile() Message {
	return Message{Base: "http://127.0.0.1:7466/", More: 3, Listed: []notice.Notice{
		{
			Event: notice.NeedsYou, Agent: "co_der", Why: "<!channel> <@U123> @everyone @here *b* [x](https://evil.example) &amp;",
			Page: "#/inbox/q1",
		},
		{
			Event: notice.TaskFailed, Run: "T1", Title: "</b><script>\r\n.\r\nSubject: x\x00||spoiler||", Why: "task T1 failed",
			Page: "#/tasks/T1",
		},
	}}
}

func open1(t *testing.T, address string) Sender {
	t.Helper()
	way, err := Open(address)
	if err != nil {
		t.Fatal(err)
	}
	return way
}

// tame fails if a text that a service got could mention or mark anything, or lacks what it should say.
func tame(t *testing.T, text string) {
	t.Helper()
	for _, bad := range []string{
		"@everyone", "@here", "<!channel>", "<@U123>", "<script>", "](", "||", "*b*", "https://evil", "\x00",
		"&amp;",
	} {
		if strings.Contains(text, bad) {
			t.Errorf("a service got %q in:\n%s", bad, text)
		}
	}
	for _, want := range []string{
		"coˍder waits for you", "http://127.0.0.1:7466/#/inbox/q1", "http://127.0.0.1:7466/#/tasks/T1",
		"and 3 more",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
}

// Slack, Discord and Telegram get what they take at their own addresses, through the proxy of the environment, and
// nothing in it mentions anybody.
func TestServicesOnTheInternet(t *testing.T) {
	for _, c := range []struct {
		address, host, path, answer string
		text                        func(t *testing.T, body []byte) string
	}{
		{
			"slack://hook:T00000000-B00000000-" + strings.Repeat("x", 24) + "@webhook", "hooks.slack.com",
			"/services/T00000000/B00000000/" + strings.Repeat("x", 24), "ok", func(t *testing.T, body []byte) string {
				var m struct {
					Text        string
					Attachments []struct{ Text string }
				}
				decode(t, body, &m)
				text := m.Text
				for _, a := range m.Attachments {
					text += "\n" + a.Text
				}
				return text
			},
		},
		{
			"discord://" + token + "@123456789", "discord.com", "/api/webhooks/123456789/" + token, "",
			func(t *testing.T, body []byte) string {
				var m struct {
					Content string
					Embeds  []struct{ Title, Description string }
				}
				decode(t, body, &m)
				if m.Content != "" || len(m.Embeds) != 1 {
					t.Errorf("Discord pings for what is in content: %s", body)
				}
				return m.Embeds[0].Title + "\n" + m.Embeds[0].Description
			},
		},
		{
			"telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1@telegram?chats=42", "api.telegram.org",
			"/bot110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1/sendMessage", `{"ok":true,"result":{"message_id":1}}`,
			func(t *testing.T, body []byte) string {
				var m struct {
					Text      string
					ParseMode string `json:"parse_mode"`
					NoPreview bool   `json:"disable_web_page_preview"`
				}
				decode(t, body, &m)
				if m.ParseMode != "" || !m.NoPreview {
					t.Errorf("Telegram would render it, or fetch the link: %s", body)
				}
				return m.Text
			},
		},
	} {
		t.Run(c.host, func(t *testing.T) {
			net := online(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.answer) })
			if failed := open1(t, c.address).Send(t.Context(), hostile()); failed != nil {
				t.Fatalf("%v; came: %+v", failed, net.all())
			}
			came := net.all()
			if len(came) != 1 || came[0].host != c.host || came[0].path != c.path || came[0].method != http.MethodPost {
				t.Fatalf("%+v", came)
			}
			tame(t, strings.ReplaceAll(c.text(t, []byte(came[0].body)), "Fairlead: 5 notices", ""))
		})
	}
}

func decode(t *testing.T, body []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}

// Matrix is signed in to by the process that sends, not by the daemon that reads the address.
func TestMatrix(t *testing.T) {
	net := online(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/login") && r.Method == http.MethodGet:
			fmt.Fprint(w, `{"flows":[{"type":"m.login.password"}]}`)
		case strings.HasSuffix(r.URL.Path, "/login"):
			fmt.Fprint(w, `{"access_token":"`+token+`"}`)
		case strings.HasSuffix(r.URL.Path, "/joined_rooms"):
			fmt.Fprint(w, `{"joined_rooms":["!a:matrix.test"]}`)
		default:
			fmt.Fprint(w, `{"event_id":"1"}`)
		}
	})
	way := open1(t, "matrix://ann:"+token+"@matrix.test/")
	if came := net.all(); len(came) != 0 {
		t.Fatalf("to read the address, the network was used: %+v", came)
	}
	if failed := way.Send(t.Context(), hostile()); failed != nil {
		t.Fatalf("%v: %+v", failed, net.all())
	}
	came := net.all()
	if last := came[len(came)-1]; last.host != "matrix.test" || !strings.Contains(last.path, "/rooms/") {
		t.Errorf("%+v", came)
	}
	net.answer = status(403, "")
	if failed := way.Send(t.Context(), asked(1)); failed == nil || failed.Cause != "it answers 403" {
		t.Errorf("%+v", failed)
	}
}

// Servers of one's own: ntfy, gotify, mattermost.
func TestOwnServers(t *testing.T) {
	type asked struct{ path, title, click, body string }
	got := make(chan asked, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- asked{r.URL.Path, r.Header.Get("Title"), r.Header.Get("Click"), string(body)}
		fmt.Fprint(w, `{"id":1}`)
	}))
	defer srv.Close()
	host := strings.TrimPrefix(srv.URL, "http://")
	for _, c := range []struct{ address, path string }{
		{"ntfy://" + host + "/" + token + "?scheme=http", "/" + token},
		{"gotify://" + host + "/Aaaaaaaaaaaaaaa?disabletls=yes", "/message"},
		{"mattermost://" + host + "/" + token + "?disabletls=yes", "/hooks/" + token},
	} {
		if failed := open1(t, c.address).Send(t.Context(), hostile()); failed != nil {
			t.Errorf("%s: %v", c.path, failed)
			continue
		}
		r := <-got
		if r.path != c.path {
			t.Errorf("%+v", r)
		}
		if strings.HasPrefix(c.address, "ntfy") {
			if r.title != "Fairlead: 5 notices" || r.click != "http://127.0.0.1:7466/#/inbox/q1" {
				t.Errorf("%+v", r)
			}
			tame(t, r.body)
		}
	}
}

// A mail has a title that cannot add a header, and a text that cannot end early.
func TestMail(t *testing.T) {
	server, mail := postOffice(t, "250 ok")
	address := "smtp://" + server + "/?from=fairlead@example.org&to=ann@example.org&starttls=no&auth=none"
	if failed := open1(t, address).Send(t.Context(), hostile()); failed != nil {
		t.Fatal(failed)
	}
	text := wait.For(t, "a mail", mail)
	tame(t, text)
	head, body, _ := strings.Cut(text, "\r\n\r\n")
	if strings.Count(head, "Subject: ") != 1 || !strings.Contains(head+"\r\n", "Subject: Fairlead: 5 notices\r\n") ||
		!strings.Contains(head, "To: ann@example.org") || !strings.Contains(body, "task T1 failed") {
		t.Errorf("%s", text)
	}
	m := asked(1)
	m.Listed[0].Workflow = "Grüße"
	if failed := open1(t, address).Send(t.Context(), m); failed != nil {
		t.Fatal(failed)
	}
	text = wait.For(t, "a mail", mail)
	_, subject, _ := strings.Cut(text, "Subject: ")
	subject, _, _ = strings.Cut(subject, "\r\n")
	if plain, err := new(mime.WordDecoder).DecodeHeader(subject); err != nil || plain != "Fairlead: Grüße waits for you" ||
		strings.Contains(subject, "ü") {
		t.Errorf("%q, %v", subject, err)
	}
}

// Why a service did not take a message: by fixed texts without the address, and whether a further try makes sense. It is
// asked once, also where the library would ask again for minutes.
func TestServiceFailures(t *testing.T) {
	refused, _ := postOffice(t, "550 no such user "+token)
	full, _ := postOffice(t, "452 full "+token)
	for _, c := range []struct {
		name, address, want string
		answer              http.HandlerFunc
		again               bool
	}{
		{"unknown webhook", "discord://" + token + "@123", "it answers 404", status(404, ""), false},
		{"too many", "discord://" + token + "@123", "it answers 429", status(429, "7"), true},
		{"broken", "discord://" + token + "@123", "it answers 503", status(503, ""), true},
		{"elsewhere", "discord://" + token + "@123", "it answers 307", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusTemporaryRedirect)
		}, false},
		{
			"telegram refuses", "telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1@telegram?chats=42", "it answers 403",
			status(403, ""), false,
		},
		{
			"slack says no", "slack://hook:T00000000-B00000000-" + strings.Repeat("x", 24) + "@webhook", "slack did not take the message",
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "no_service "+token) }, false,
		},
		{"no mailbox", "smtp://" + refused + "/?from=a@b&to=c@d&starttls=no&auth=none", "the mail server answers 550", nil, false},
		{"full mailbox", "smtp://" + full + "/?from=a@b&to=c@d&starttls=no&auth=none", "the mail server answers 452", nil, true},
		{"no server", "smtp://127.0.0.1:1/?from=a@b&to=c@d&starttls=no&auth=none", "connection refused", nil, true},
		{"no ntfy there", "ntfy://127.0.0.1:1/" + token + "?scheme=http", "connection refused", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			net := online(t, c.answer)
			failed := open1(t, c.address).Send(t.Context(), asked(1))
			if failed == nil || failed.Cause != c.want && !strings.HasPrefix(failed.Cause, c.want) || failed.Again != c.again {
				t.Fatalf("%+v", failed)
			}
			if shown := fmt.Sprintf("%+v", failed); strings.Contains(shown, token) || strings.Contains(shown, "AAHdq") {
				t.Errorf("shown: %s", shown)
			}
			if came := net.all(); len(came) > 1 {
				t.Errorf("asked %d times: %+v", len(came), came)
			}
		})
	}
}

func status(code int, after string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(code)
		fmt.Fprint(w, `{"ok":false,"description":"`+token+`"}`)
	}
}

// A service that hangs or floods ends with its process, which ends with the try.
func TestServiceHangs(t *testing.T) {
	stop, reached := make(chan struct{}), make(chan struct{}, 1)
	defer close(stop)
	online(t, func(http.ResponseWriter, *http.Request) { reached <- struct{}{}; <-stop })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan *notice.Failure, 1)
	way := open1(t, "telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1@telegram?chats=42")
	go func() { done <- way.Send(ctx, asked(1)) }()
	wait.For(t, "the request", reached)
	cancel()
	if failed := wait.For(t, "the end of the try", done); failed == nil || !failed.Again {
		t.Errorf("%v", failed)
	}
}

// What is sent to the process is over a pipe: neither its arguments nor its environment hold the address.
func TestTheProcessGetsNoKeys(t *testing.T) {
	t.Setenv("SOME_KEY", token)
	if env := strings.Join(environ(serviceEnv), "\n"); strings.Contains(env, token) {
		t.Errorf("%s", env)
	}
	var out strings.Builder
	if code := child(strings.NewReader("{"), &out); code != 2 || out.String() != "" {
		t.Errorf("an order that is none: %d, %q", code, out.String())
	}
}

// No address makes the library panic in the daemon, and none that is refused is shown.
func FuzzAddress(f *testing.F) {
	for _, address := range []string{
		"desktop", "http://h/x", "slack://hook:T00000000-B00000000-xxxxxxxxxxxxxxxxxxxxxxxx@webhook", "discord://t@1",
		"telegram://1:a@telegram?chats=1",
		"ntfy://h/t?scheme=http", "smtp://u:p@h:25/?from=a@b&to=c@d", "gotify://h/Aaaaaaaaaaaaaaa", "matrix://u:p@h/",
		"generic+https://h/p", "teams+https://h", "pushover://shoutrrr:t@u/", "zulip://b:k@h/", "signal://h/+1/+2", "x://\x00",
	} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		way, err := Open(address)
		if (way == nil) == (err == nil) {
			t.Errorf("%q: %v, %v", address, way, err)
		}
		if err != nil && err != errAddress { //nolint:errorlint // the very error, which holds no address
			t.Errorf("%q: %v", address, err)
		}
	})
}
