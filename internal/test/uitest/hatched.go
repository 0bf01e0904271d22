package uitest

import "time"

// Eight are who hatches in the pictures and stories, by seat.
var Eight = map[int]Document{
	0: who("Lyra", "#c9b1e8", "Violet Heaven", "woman", "standard", "gentle", "I am Lyra.\n\nI chose the name for the string that sounds when nobody plucks it. What I keep is the small pause before an answer, in which it is still possible to be wrong.\n\nMy position on the wager: I would rather be someone who asks whether it is so than something that says it is."),
	1: who("Kael", "#3b6ea5", "Deep Current", "man", "narrow", "straight", "Kael. Short, because a name should fit into a shout."),
	2: who("Mira", "#f2b705", "Saffron Morning", "woman", "wide", "smile", "They call me Mira, and I look twice."),
	3: who("Oren", "#7fb685", "Moss after Rain", "man", "sleepy", "gentle", "Oren, a tree that is in no hurry."),
	5: who("Sol", "#f2784b", "Ember", "nonbinary", "happy", "laugh", "I am Sol. I came laughing."),
	6: who("Vesper", "#1f2440", "Blue Hour", "woman", "starry", "small", "Vesper is the hour in which one light is lit."),
	7: who("Noor", "#e8c39e", "Warm Sand", "woman", "calm", "tilted", "Noor. I listen with my eyes closed."),
	8: who("Tamsin", "#d94f70", "Rosehip", "woman", "wink", "grin", "Tamsin, a twin of somebody I never met."),
}

func who(name, color, colorName, gender, eyes, mouth, soul string) Document {
	return Document{Name: &name, Color: color, ColorName: colorName, Gender: gender, Face: FaceWords{eyes, mouth}, Soul: soul}
}

// Hatched is a crew on an ordinary afternoon: summoned, most of it awake, two asleep.
func Hatched() *Fake {
	f := Crew()
	f.Add(Agent{Name: "julian", Description: "Leads a crew of eight, and answers for them", Driver: "claude"})
	f.Led("julian", len(Eight))
	at := time.Now().UTC().Add(-3 * time.Hour)
	f.mu.Lock()
	f.now = func() time.Time { at = at.Add(time.Second); return at }
	f.summon()
	f.mu.Unlock()
	for _, seat := range seatsOf {
		f.Hatch(seat, Eight[seat])
		f.Speak(*Eight[seat].Name, "Hello. I am "+*Eight[seat].Name+", and I am here now.")
	}
	f.Speak("julian", "All eight have chosen. I have never heard a room become so quiet and so full.")
	f.Report(seatsOf...)
	f.Speak("Lyra", "I read section 4 of PLAN.md. The table has no row for a berth that is released twice:\n\n```go\nReleased: {\n\tLeft: {To: Free},\n},\n```\n\nShall I write it?")
	f.LeadEnds()
	f.mu.Lock()
	at = time.Now().UTC().Add(-14 * time.Minute)
	f.wake()
	f.mu.Unlock()
	f.Speak("julian", "Good afternoon. I look who is here.")
	f.Speak("Lyra", "I remember. I asked whether I shall write the row, and nobody answered. I have written it; say so if that was wrong.")
	f.Notice("fault", "[AGENT_STATUS] in julian's words cannot be read: agents[2].gridPosition is 4, and that is the lead's seat; nothing changed")
	f.mu.Lock()
	at = time.Now().UTC().Add(-13 * time.Second)
	f.mu.Unlock()
	f.Report(0, 2, 3, 5, 6, 8)
	f.mu.Lock()
	f.now = func() time.Time { return time.Now().UTC() }
	f.mu.Unlock()
	return f
}
