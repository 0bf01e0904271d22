package workflow

import "testing"

// W9, W6: a gate that sends the run back keeps the separate yes of the last approval, whose record ends with its round. The next answer
// replaces it, be it a rejection.
func TestYesOutlivesItsRound(t *testing.T) {
	s := &stage{t: t}
	lines := func(all ...string) {
		for _, line := range all {
			s.line(line)
		}
	}
	approve := func(yes string, rejected bool) {
		t.Helper()
		_, p, _ := s.run.Find("approve")
		s.decide(AnswerRead{
			Lease: Lease{Step: "approve", N: p.N}, By: "ada", Place: true, Rejected: rejected,
			Record: Answer{Governing: yes},
		})
	}
	is := func(yes, record string) {
		t.Helper()
		if _, p, _ := s.run.Find("approve"); p.Governing != yes || p.Answer.Governing != record {
			t.Fatalf("the yes is %q, in the record %q; want %q, %q", p.Governing, p.Answer.Governing, yes, record)
		}
	}
	lines("plan pause iterations=9 places=1", "  work", "  approve needs=work human back=work", "  land needs=approve back=work", "start")
	round := []string{"work starts", "work reports", "approve starts", "approve reports"}
	lines(round...)
	approve("one", false)
	is("one", "one")
	lines("land starts", "land reports gate")
	is("one", "")
	lines("restart")
	is("one", "")
	lines(round...)
	approve("two", false)
	is("two", "two")
	lines("land starts", "land reports gate")
	lines(round...)
	approve("", true)
	is("", "")
}
