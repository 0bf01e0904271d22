package sqlite

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/engine/journal"
	"github.com/fairlead-dev/fairlead/internal/test/journaltest"
)

// bareBytes is a small record, as one who writes a log of lines would write it.
const bareBytes = 200

// bareRate measures how often a second this disk takes a 200-byte write and a sync.
func bareRate(b *testing.B, dir string, n int) float64 {
	b.Helper()
	f, err := os.Create(filepath.Join(dir, "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	record := make([]byte, bareBytes)
	began := time.Now()
	for range n {
		if _, err := f.Write(record); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(began).Seconds()
}

// BenchmarkAppend measures durable batches a second, beside bare writes of the same run.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("changes=%d", size), func(b *testing.B) {
			dir := b.TempDir()
			j := opened(b, filepath.Join(dir, "journal.db"))
			batch := journaltest.MadeBatch(size)
			for range 10 {
				if _, err := j.Append(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			var bare, ours time.Duration
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; { // turn about, so that both meet the same disk
				n := min(256, b.N-done)
				b.StopTimer()
				bare += time.Duration(float64(n) / bareRate(b, dir, n) * float64(time.Second))
				b.StartTimer()
				began := time.Now()
				for range n {
					if _, err := j.Append(b.Context(), batch); err != nil {
						b.Fatal(err)
					}
				}
				ours += time.Since(began)
				done += n
			}
			rate := float64(b.N) / ours.Seconds()
			b.ReportMetric(rate, "batches/s")
			b.ReportMetric(rate*float64(size), "changes/s")
			b.ReportMetric(bare.Seconds()/ours.Seconds(), "of-bare")
		})
	}
}

const readChanges = 100_000

// filled gives a journal with many changes, and its path.
func filled(b *testing.B, changes int) (*Journal, string) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "journal.db")
	j := opened(b, path)
	for done := 0; done < changes; done += journal.BatchChangesMax {
		batch := make([]journal.Change, journal.BatchChangesMax)
		for i := range batch {
			batch[i] = journaltest.Made(fmt.Sprintf("control/agent-%d", i%8), done+i)
		}
		if _, err := j.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	return j, path
}

// BenchmarkRead reads and checks all changes, beside a SELECT of the same rows.
func BenchmarkRead(b *testing.B) {
	j, path := filled(b, readChanges)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	var bare time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		n := 0
		for _, err := range j.Read(b.Context(), journal.Query{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != readChanges {
			b.Fatal(n)
		}
		b.StopTimer()
		began := time.Now()
		scanRows(b, db)
		bare += time.Since(began)
		b.StartTimer()
	}
	perChange := b.Elapsed() / time.Duration(b.N*readChanges)
	b.ReportMetric(float64(perChange.Nanoseconds()), "ns/change")
	b.ReportMetric(float64((bare / time.Duration(b.N*readChanges)).Nanoseconds()), "bare-ns/change")
	b.ReportMetric(b.Elapsed().Seconds()/bare.Seconds(), "times-bare")
}

func scanRows(b *testing.B, db *sql.DB) {
	b.Helper()
	rows, err := db.Query(selectChanges, 0, readChanges, readChanges)
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if _, _, err := scan(rows); err != nil {
			b.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkReadStream reads one entity of eight.
func BenchmarkReadStream(b *testing.B) {
	j, _ := filled(b, readChanges)
	for b.Loop() {
		for _, err := range j.Read(b.Context(), journal.Query{Entity: "control/agent-3"}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*readChanges/8), "ns/change")
}

// BenchmarkOpen opens and closes a journal with some history.
func BenchmarkOpen(b *testing.B) {
	_, path := filled(b, 10_000)
	for b.Loop() {
		j, err := Open(b.Context(), path)
		if err != nil {
			b.Fatal(err)
		}
		if err := j.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSize says what a change takes on disk, beside its data.
func BenchmarkSize(b *testing.B) {
	j, path := filled(b, readChanges)
	if err := j.Close(); err != nil { // which writes the log into the file
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	data := 0
	for i := range readChanges {
		data += len(journaltest.Made("control/a", i).Data)
	}
	b.ReportMetric(float64(info.Size())/readChanges, "bytes/change")
	b.ReportMetric(float64(data)/readChanges, "data-bytes/change")
	b.ReportMetric(0, "ns/op")
}
