package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A target with all of its settings, and the two short forms.
func TestNotify(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "url")
	if err := os.WriteFile(secret, []byte("ntfy://ntfy.sh/hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := "version: 1\nagents: {}\nnotify:\n  page: https://example.org/team\n  webhook: https://h/x\n  desktop: true\n  targets:\n" +
		"    phone: {url_file: " + secret + ", events: [needs_you, gave_up], quiet: '22:00-07:30', zone: Europe/Berlin, per_hour: 5}\n" +
		"    team: {url: '${TEAM}'}\n"
	env := environment(map[string]string{"TEAM": "slack://x"})
	cfg, err := Parse(FileName, folder(t, nil), []byte(text), env)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range cfg.Notify.Targets {
		target := &cfg.Notify.Targets[i]
		address, err := target.Address(env)
		if err != nil {
			t.Error(err)
		}
		got = append(got, target.Name+" "+address)
	}
	if want := "webhook https://h/x, desktop desktop, phone ntfy://ntfy.sh/hunter2, team slack://x"; strings.Join(got, ", ") != want {
		t.Errorf("%q", got)
	}
	phone := cfg.Notify.Targets[2]
	if phone.Quiet != (Quiet{22 * time.Hour, 7*time.Hour + 30*time.Minute}) || phone.Zone != "Europe/Berlin" || phone.PerHour != 5 ||
		strings.Join(phone.Events, " ") != "needs_you gave_up" || cfg.Notify.Page != "https://example.org/team/" {
		t.Errorf("%+v, %s", phone, cfg.Notify.Page)
	}
}

// A file with an address that others could read, or that agents can, is refused.
func TestSecretFiles(t *testing.T) {
	dir := folder(t, map[string]string{"here": "ntfy://ntfy.sh/hunter2\n"})
	outside := t.TempDir()
	for name, want := range map[string]string{
		"open": "can be read by other users; run chmod 600", "large": "is not a file of at most", "folder": "is not a file of at most",
		"gone":   "it does not exist",
		"linked": "is in the repository", "good": "",
	} {
		path := filepath.Join(outside, name)
		var err error
		switch name {
		case "open":
			err = os.WriteFile(path, []byte("x"), 0o644) //nolint:gosec // that is the fault
		case "large":
			err = os.WriteFile(path, make([]byte, urlFileBytesMax+1), 0o600)
		case "folder":
			err = os.Mkdir(path, 0o700)
		case "linked":
			err = os.Symlink(filepath.Join(dir, "here"), path)
		case "good":
			err = os.WriteFile(path, []byte("ntfy://ntfy.sh/hunter2"), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, err = Parse(FileName, dir, []byte("version: 1\nagents: {}\nnotify: {targets: {a: {url_file: '"+path+"'}}}\n"), environment(nil))
		if want == "" && err != nil ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
