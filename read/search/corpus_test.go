package search

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// corpus makes output as agents write it: sentences, code, listings of files, logs with times and
// hashes, diffs, and some Chinese and Japanese. The frequencies of words follow Zipf's law, as those
// of natural texts do, and names in the code are made of the same words.
type corpus struct {
	r     *rand.Rand
	words []string
	zipf  *rand.Zipf
}

const vocabulary = 40_000

func newCorpus(seed uint64) *corpus {
	r := rand.New(rand.NewPCG(seed, 1))
	c := &corpus{r: r, zipf: rand.NewZipf(r, 1.15, 8, vocabulary-1)}
	parts := strings.Fields("re con tra pro ser ver up load try fi le ma na ger que ue han dle er ror test ing cli ent ses sion to ken ti me out co de da ta ba se in dex sto re ca che lo ck thr ead wri te rea der bu ffer par se")
	c.words = strings.Fields("the to of and a in is it that for on with as this be not are from an at or if retry upload error file test return func err nil build run agent session change line value type string")
	known := map[string]bool{}
	for _, w := range c.words {
		known[w] = true
	}
	for len(c.words) < vocabulary {
		var w string
		for range 2 + r.IntN(3) {
			w += parts[r.IntN(len(parts))]
		}
		if known[w] {
			w += fmt.Sprintf("%c%c", 'a'+r.IntN(26), 'a'+r.IntN(26))
		}
		if !known[w] {
			known[w] = true
			c.words = append(c.words, w)
		}
	}
	return c
}

func (c *corpus) word() string { return c.words[c.zipf.Uint64()] }

func (c *corpus) name() string {
	a, b := c.word(), c.word()
	switch c.r.IntN(3) {
	case 0:
		return a + "_" + b
	case 1:
		return a + strings.ToUpper(b[:1]) + b[1:]
	}
	return a
}

func (c *corpus) path() string {
	return c.word() + "/" + c.word() + "/" + c.name() + []string{".go", ".ts", ".py", ".md"}[c.r.IntN(4)]
}

func (c *corpus) line(b *strings.Builder) {
	switch n := c.r.IntN(100); {
	case n < 40: // a sentence
		for i := range 8 + c.r.IntN(14) {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(c.word())
		}
		b.WriteByte('.')
	case n < 65: // code
		fmt.Fprintf(b, "\t%s, err := %s(%s, %q)", c.name(), c.name(), c.name(), c.word()+" "+c.word())
	case n < 75: // a log
		fmt.Fprintf(b, "2026-11-%02dT%02d:%02d:%02d.%03dZ INFO %s %s=%d id=%08x", 1+c.r.IntN(28), c.r.IntN(24), c.r.IntN(60), c.r.IntN(60),
			c.r.IntN(1000), c.word(), c.name(), c.r.IntN(100000), c.r.Uint32())
	case n < 87: // a test, a listing
		fmt.Fprintf(b, "ok  \t%s\t%d.%03ds", c.path(), c.r.IntN(10), c.r.IntN(1000))
	case n < 97: // a diff
		fmt.Fprintf(b, "%c%s.%s = %s[%d]", "+-"[c.r.IntN(2)], c.name(), c.name(), c.name(), c.r.IntN(100))
	default:
		b.WriteString([]string{"重试上传时出现错误，请检查网络连接", "アップロードの再試行に失敗しました", "업로드를 다시 시도합니다", "数据库索引已经更新完成"}[c.r.IntN(4)])
	}
}

// passages makes about so many bytes of output, by session, and calls each for every passage.
func (c *corpus) passages(bytes int64, each func(Passage)) {
	at := time.Date(2026, 10, 1, 8, 0, 0, 0, time.UTC)
	const sessionBytes = 2 << 20
	n := 0
	for made := int64(0); made < bytes; {
		n++
		agent := fmt.Sprintf("agent%d", n%8)
		place := Place{Kind: Output, Entity: fmt.Sprintf("%s-%d", agent, n), Agent: agent}
		for offset := int64(0); offset < sessionBytes && made < bytes; {
			at = at.Add(7 * time.Second)
			p := Passage{Place: place, Time: at, At: offset}
			var b strings.Builder
			for b.Len() < PassageBytes {
				p.Lines = append(p.Lines, Line{Text: b.Len(), At: offset + int64(b.Len())})
				c.line(&b)
				b.WriteByte('\n')
			}
			p.Text = b.String()
			offset += int64(len(p.Text))
			made += int64(len(p.Text))
			each(p)
		}
	}
}
