package team

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestFolderMovePath(t *testing.T) {
	t.Parallel()
	m := FolderMove{"/home/a/web", "/srv/web"}
	for path, want := range map[string]string{
		"/home/a/web":                        "/srv/web",
		"/home/a/web/.agents/runs/T1/report": "/srv/web/.agents/runs/T1/report",
		"/home/a/web-2/x":                    "",
		"/home/a/we":                         "",
		"/home/a":                            "",
		"home/a/web/x":                       "",
		"/tmp/home/a/web":                    "",
		"":                                   "",
	} {
		got, is := m.Path(path)
		if is != (want != "") || is && got != want || !is && got != path || m.Of(path) != got {
			t.Errorf("%q becomes %q, %v; want %q", path, got, is, want)
		}
	}
	if got, is := (FolderMove{}).Path("/x"); is || got != "/x" {
		t.Errorf("the zero value moves a path to %q", got)
	}
}

func TestFolderMoveJSON(t *testing.T) {
	t.Parallel()
	m := FolderMove{"/a<b", "/c\"d"}
	text, err := json.Marshal(map[string]any{
		"tree": "/a<b/x", "root": "/a<b", "other": "/a<bc",
		"list": []string{"/a<b/1", "say \"/a<b/2\" to", "in /a<b/3"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tree, Root, Other string
		List              []string
	}
	if err := json.Unmarshal([]byte(m.JSON(string(text))), &got); err != nil {
		t.Fatal(err)
	}
	if got.Tree != "/c\"d/x" || got.Root != "/c\"d" || got.Other != "/a<bc" ||
		strings.Join(got.List, "|") != "/c\"d/1|say \"/a<b/2\" to|in /a<b/3" {
		t.Errorf("%+v", got)
	}
	if same := (FolderMove{}).JSON(string(text)); same != string(text) {
		t.Errorf("the zero value changes %s", same)
	}
}

// There and back gives the same, for paths and for texts in JSON.
func TestFolderMoveAndBack(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	part := func() string {
		return []string{"a", "b", "a b", `q"q`, `back\slash`, "ü", "<x>", "\x01"}[random.IntN(8)]
	}
	path := func(n int) string {
		text := ""
		for range n {
			text += "/" + part()
		}
		return text
	}
	for range 5000 {
		m := FolderMove{path(1 + random.IntN(3)), path(1 + random.IntN(3))}
		back := FolderMove{m.To, m.From}
		var all []string
		for range 5 {
			one := path(random.IntN(4))
			if random.IntN(2) == 0 {
				one = m.From + path(random.IntN(3))
			}
			_, inside := m.Path(one)
			if _, there := back.Path(one); there && !inside {
				continue // it cannot be seen that it was never moved
			}
			all = append(all, one, `"`+one)
			if got := back.Of(m.Of(one)); got != one {
				t.Fatalf("%q comes back as %q by %+v", one, got, m)
			}
		}
		text, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := json.Unmarshal([]byte(m.JSON(string(text))), &got); err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if got[i] != m.Of(all[i]) {
				t.Fatalf("%q becomes %q by %+v, want %q", all[i], got[i], m, m.Of(all[i]))
			}
		}
		if same := back.JSON(m.JSON(string(text))); same != string(text) {
			t.Fatalf("%s comes back as %s by %+v", text, same, m)
		}
	}
}
