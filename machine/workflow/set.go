package workflow

import (
	"iter"
	"math/bits"
	"time"
)

// set is a set of step numbers that is iterated in the plan's order. It needs one bit per step, so
// that a run with many thousand steps can be searched at every event.
type set struct {
	words []uint64
	n     int // members
	least int // no word before this one has a member
}

func newSet(size int) set { return set{words: make([]uint64, (size+63)/64)} }

func (s *set) add(i int) {
	if word, bit := i/64, uint64(1)<<(i%64); s.words[word]&bit == 0 {
		s.words[word] |= bit
		s.n++
		s.least = min(s.least, word)
	}
}

func (s *set) drop(i int) {
	word, bit := i/64, uint64(1)<<(i%64)
	if s.words[word]&bit == 0 {
		return
	}
	s.words[word] &^= bit
	s.n--
	for s.n > 0 && s.words[s.least] == 0 {
		s.least++
	}
	if s.n == 0 {
		s.least = len(s.words)
	}
}

func (s *set) has(i int) bool { return s.words[i/64]&(1<<(i%64)) != 0 }

// all iterates over the members in order.
func (s *set) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		left := s.n
		for word := s.least; left > 0; word++ {
			for rest := s.words[word]; rest != 0; rest &= rest - 1 {
				left--
				if !yield(word*64 + bits.TrailingZeros64(rest)) {
					return
				}
			}
		}
	}
}

// timerEntry is a deadline of a step.
type timerEntry struct {
	at int64 // nanoseconds since 1970
	i  int
}

// timerHeap is a heap with the earliest entry first. An obsolete entry stays until it reaches the
// top; the reader checks whether it still applies.
type timerHeap []timerEntry

func (a timerHeap) before(x, y int) bool {
	return a[x].at < a[y].at || a[x].at == a[y].at && a[x].i < a[y].i
}

func (a *timerHeap) push(at time.Time, i int) {
	*a = append(*a, timerEntry{at.UnixNano(), i})
	h := *a
	for k := len(h) - 1; k > 0 && h.before(k, (k-1)/2); k = (k - 1) / 2 {
		h[k], h[(k-1)/2] = h[(k-1)/2], h[k]
	}
}

func (a *timerHeap) pop() {
	h := *a
	h[0] = h[len(h)-1]
	h = h[:len(h)-1]
	*a = h
	for k := 0; ; {
		next := k
		for _, child := range []int{2*k + 1, 2*k + 2} {
			if child < len(h) && h.before(child, next) {
				next = child
			}
		}
		if next == k {
			return
		}
		h[k], h[next] = h[next], h[k]
		k = next
	}
}
