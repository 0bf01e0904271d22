package search

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestMeasure prints how long it takes to index, and to search, so many megabytes of generated
// output:
//
//	SEARCH_MB=1024 go test -count=1 -timeout 60m -run TestMeasure -v ./read/search
//
// With SEARCH_FILE the index stays in that file, and is searched only if it has a passage already.
func TestMeasure(t *testing.T) {
	mb, err := strconv.Atoi(os.Getenv("SEARCH_MB"))
	if err != nil {
		t.Skip("set SEARCH_MB to the megabytes of output to index")
	}
	path := cmp.Or(os.Getenv("SEARCH_FILE"), filepath.Join(t.TempDir(), "search.db"))
	x := New(path, BytesMax)
	if _, err := x.Repair(); err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	ctx := context.Background()
	var batch Batch
	var size, text, all int64
	var spent time.Duration
	put := func() {
		began := time.Now()
		if _, err := x.Add(ctx, batch); err != nil {
			t.Fatal(err)
		}
		spent += time.Since(began)
		batch.Passages, size = batch.Passages[:0], 0
	}
	if old, err := x.Find(ctx, Query{Text: "the"}); err != nil {
		t.Fatal(err)
	} else if len(old.Found) > 0 {
		mb = 0
	}
	newCorpus(1).passages(int64(mb)<<20, func(p Passage) {
		batch.Passages = append(batch.Passages, p)
		size += int64(len(p.Text))
		text += int64(len(p.Text))
		all++
		if size >= 2<<20 {
			put()
		}
	})
	put()
	used, err := used(ctx, x.read)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MB of text, %d passages: indexed in %.1f s (%.1f MB/s); index %d MB, ratio %.2f", text>>20, all, spent.Seconds(),
		float64(text)/1e6/spent.Seconds(), used>>20, float64(used)/float64(text))
	var every []time.Duration
	for _, q := range []Query{
		{Text: "retry upload"},
		{Text: `"retry upload"`},
		{Text: "retry"},
		{Text: "error"},
		{Text: "the"},
		{Text: "con"},
		{Text: "re"},
		{Text: "pro ver"},
		{Text: "retry upload session agent value"},
		{Text: "tokenupload"},
		{Text: "nowhereatall"},
		{Text: "retry nowhereatall"},
		{Text: `"upload the retry of"`},
		{Text: `"upload tokenupload"`},
		{Text: `"of retry test"`},
		{Text: `"session nowhereatall"`},
		{Text: "重试上传"},
		{Text: "再試行"},
		{Text: "err nil", Agent: "agent3"},
		{Text: "retry upload", Kinds: []string{Channel}},
		{Text: "a", Limit: 100},
		{Text: "retry upload", Since: time.Date(2026, 10, 1, 9, 0, 0, 0, time.UTC)},
		{Text: "retry_upload"},
		{Text: "seruploadmana"},
	} {
		var took []time.Duration
		var page Page
		for range 7 {
			if page, err = x.Find(ctx, q); err != nil {
				t.Fatal(err)
			}
			took = append(took, page.Took)
		}
		first := took[0]
		slices.Sort(took)
		every = append(every, took...)
		t.Logf("%-40q %3d found  first %8.2f ms  median %8.2f ms  worst %8.2f ms  %s", q.Text, len(page.Found), ms(first),
			ms(took[len(took)/2]), ms(took[len(took)-1]), page.Stopped)
	}
	slices.Sort(every)
	t.Logf("all queries: median %.2f ms, worst %.2f ms", ms(every[len(every)/2]), ms(every[len(every)-1]))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
