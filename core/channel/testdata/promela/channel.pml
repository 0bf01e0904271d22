/* One channel, and all that may happen to it, written by hand from SPEC (Turn) and seed 003.
 *
 * What a row does stands in table.pml, which the test writes from turn.Table. What an act does
 * to the channel, what agents, people and clocks may do, and the promises at the end are written
 * here, once more and in other words than the Go code has: so a row that is wrong, or an act that
 * was thought of wrongly, shows as a promise that does not hold.
 *
 * What is left out: texts, announcements, errands that stop work, limits and holds. Of people's
 * messages one is open at a time, with one interruption behind another; a new one takes the place
 * of one that somebody has. What is kept of a turn's number is whether it is the one under way:
 * numbers never come back. Agents may act under a number that is over at any moment.
 */
#ifndef N
#define N 3
#endif
#define NOBODY N
#ifndef LEAD
#define LEAD NOBODY
#endif
#ifndef PATIENCE
#define PATIENCE 2 /* so often people interrupt, or give the turn away by hand; then they let the agents be */
#endif
#ifndef ROUNDS
#define ROUNDS 0 /* turns of each after a person's message; 0: no limit */
#endif

#include "table.pml"

mtype:what = { connects, restarts, goes, breaks, misses, is_disabled, is_enabled, assigned_to, removed_from, is_granted,
	is_skipped, sent_on_way, sent_to_queue, says_to_queue, says_into, says_to_all, interrupts,
	learns, is_told, is_given, says, finishes, finishes_quietly, ends, passes, waits, is_ready, answers,
	turn_time, wait_time, silence_time, aside_time };

mtype:message = { none, kept, delivered };

/* The agents. */
mtype:state st[N] = OFFLINE;
bool here[N];    /* connected */
bool off[N];     /* disabled */
bool member[N];
bool owed[N];
bool call[N];    /* words of another agent ask it for a turn */
bool has[N];     /* it has the open message */
bool let[N];     /* it had a turn for it */
byte took[N];

/* The channel. */
byte queue[N];
byte lined;
byte holder = NOBODY;
byte rests = NOBODY;
byte aside = NOBODY; /* who answers a person that interrupted */
bool more;           /* another interruption waits */
bool stopped;        /* the holder waits because a person interrupted */
mtype:message open = none;
bool into;           /* it goes into a turn under way */
bool spoke;          /* the holder said something in its turn */
bool known, told;    /* the holder knows its number; and we know that it does */
bool covers, given;  /* what it is told with its turn has the message; it came in the middle */
bool turn_runs, wait_runs, silence_runs, aside_runs, left;

byte patience = PATIENCE;
bool moved_late; /* something moved under a number that is over */

bool fired;      /* time passed: the last that happened was a deadline */

/* What happens now; all of it is forgotten when it has. */
mtype:what what;
byte who;
bool over; /* under a number that is over */
byte next_who[5], next_event[5], next, last; /* rules to be taken, in order */
byte phase;
bool fresh;
mtype:state to;
int acts;
byte i, j;
bool some, halted;

#define online(a) (here[a] && !off[a])
#define has_turn(a) (st[a] == ACTIVE || st[a] == WAITING)
#define in_circle(a) (st[a] == QUEUED || has_turn(a) || rests == a)
#define due(a) (call[a] || (open != none && !has[a] && !let[a]))
#define may(a) (ROUNDS == 0 || took[a] < ROUNDS)
#define lead_free (LEAD < N && LEAD != holder && online(LEAD))
#define clock_armed (turn_runs || wait_runs || silence_runs || aside_runs)

/* A rule of the table is to be taken. */
inline take(a, e) { next_who[last] = a; next_event[last] = e; last++ }

/* What the acts do. */
inline dequeue(a) {
	i = 0;
	do
	:: i < lined && queue[i] != a -> i++
	:: else -> break
	od;
	if
	:: i < lined ->
		lined--;
		do
		:: i < lined -> queue[i] = queue[i + 1]; i++
		:: else -> queue[i] = 0; break
		od
	:: else
	fi
}

inline unrest(a) {
	if
	:: rests == a -> rests = NOBODY
	:: else
	fi
}

/* The message waits again when nobody of the circle has it. */
inline lost_with(a) {
	has[a] = false;
	some = false;
	i = 0;
	do
	:: i < N ->
		some = some || (in_circle(i) && i != a && (has[i] || (i == holder && (given || (told && covers)))));
		i++
	:: else -> break
	od;
	if
	:: open == delivered && !some -> open = kept
	:: else
	fi
}

/* A message is there that is for whoever is next. */
inline new_message(how) { fresh = true; into = how }

inline renew() {
	fresh = false;
	open = kept; covers = false; given = false;
	i = 0;
	do
	:: i < N -> has[i] = false; let[i] = false; took[i] = 0; i++
	:: else -> break
	od
}

inline free_turn(a) {
	holder = NOBODY;
	known = false; told = false; covers = false; given = false; stopped = false; spoke = false;
	turn_runs = false; wait_runs = false; silence_runs = false; left = false;
	if
	:: aside == a -> aside = NOBODY; new_message(true) /* it is anybody's now */
	:: else
	fi
}

inline join_queue(a) { dequeue(a); queue[lined] = a; lined++; owed[a] = false; unrest(a) }
inline leave_queue(a) { dequeue(a); owed[a] = false; unrest(a); lost_with(a) }
inline leave_rotation(a) { leave_queue(a); member[a] = false }
inline take_turn(a) {
	dequeue(a);
	holder = a;
	covers = (open != none && !has[a]);
	if
	:: ROUNDS > 0 && took[a] < ROUNDS -> took[a]++
	:: else
	fi
}
inline start_turn_timer(a) { turn_runs = true }
inline pause_turn_timer(a) { left = turn_runs; turn_runs = false; silence_runs = false }
inline resume_turn_timer(a) { turn_runs = left; left = false }
inline start_wait_timer(a) { wait_runs = true }
inline stop_wait_timer(a) { wait_runs = false }
inline go_on(a) { stopped = false }
inline rest(a) { rests = a }
inline lose_turn(a) { free_turn(a) }
inline end_turn(a) {
	if
	:: told ->
		call[a] = false;
		if
		:: open != none && (covers || given) -> has[a] = true; let[a] = true
		:: else
		fi
	:: else ->
		some = false;
		i = 0;
		do
		:: i < lined -> some = some || (queue[i] != a && due(queue[i]) && may(queue[i])); i++
		:: else -> break
		od;
		if
		:: !some -> call[a] = false; let[a] = true /* nobody else: it is not asked again for the same */
		:: else
		fi
	fi;
	free_turn(a)
}
inline close_messages(a) {
	if
	:: open == delivered && (has[a] || given || (told && covers)) ->
		open = none; covers = false; given = false;
		i = 0;
		do
		:: i < N -> has[i] = false; let[i] = false; i++
		:: else -> break
		od
	:: else
	fi
}
/* These say or log something, and the promises are about neither. */
inline cancel_work(a) { skip }
inline count_pass(a) { skip }
inline announce_timeout(a) { skip }
inline announce_disconnect(a) { skip }
inline note_context(a) { skip }

/* A person interrupts whoever has the turn. */
inline interrupt() {
	if
	:: holder == NOBODY && aside == NOBODY -> new_message(true)
	:: aside != NOBODY -> more = true
	:: holder != NOBODY && aside == NOBODY && lead_free ->
		aside = LEAD; aside_runs = true;
		if
		:: st[holder] == ACTIVE -> stopped = true; take(holder, e_interrupted)
		:: else
		fi
	:: holder != NOBODY && aside == NOBODY && !lead_free && st[holder] == ACTIVE ->
		stopped = true; take(holder, e_interrupted); ask_itself()
	:: else -> new_message(true); take(holder, e_sent_on)
	fi
}

inline ask_itself() { aside = holder; take(holder, e_asked_itself) }

inline aside_over(a) {
	aside = NOBODY; aside_runs = false;
	halted = holder != NOBODY && st[holder] == WAITING && stopped;
	if
	:: more && halted && lead_free -> more = false; aside = LEAD; aside_runs = true
	:: more && halted && !lead_free -> more = false; ask_itself()
	:: more && !halted && holder == a -> more = false; aside = a; turn_runs = true
	:: !more && (halted || holder == a) -> take(holder, e_aside_answered)
	:: more && !halted && holder != a -> more = false; interrupt()
	:: else
	fi
}

inline lead_lost(a) {
	if
	:: aside == a ->
		aside = NOBODY; aside_runs = false;
		if
		:: holder != NOBODY && st[holder] == WAITING && stopped -> ask_itself()
		:: else -> new_message(true)
		fi
	:: else
	fi
}

inline second(a) {
	if
	:: rests != NOBODY && rests != a -> take(rests, e_second_came)
	:: else
	fi
}

inline welcome(a) { member[a] = true; owed[a] = !online(a); call[a] = false; has[a] = false; let[a] = false }

inline assign(a) {
	if
	:: member[a] && (st[a] == QUEUED || has_turn(a) || rests == a || (st[a] == OFFLINE && owed[a])) -> skip
	:: else ->
		if
		:: st[a] == IDLE -> second(a)
		:: else
		fi;
		welcome(a);
		take(a, e_assigned)
	fi
}

inline comes(a, e) {
	take(a, e);
	if
	:: online(a) && owed[a] -> second(a); welcome(a); take(a, e_assigned)
	:: else
	fi
}

inline leaves(a, e) {
	if
	:: st[a] != OFFLINE ->
		take(a, e);
		if
		:: holder != a -> lead_lost(a)
		:: else
		fi
	:: else
	fi
}

/* A turn in which the holder said nothing answers no message. */
inline finish(a, e, alone, mute, mute_alone) {
	if
	:: lined == 0 && spoke -> take(a, alone)
	:: lined == 0 && !spoke -> take(a, mute_alone)
	:: lined > 0 && spoke -> take(a, e)
	:: else -> take(a, mute)
	fi
}

/* It knows the number, so it was told. */
inline tell() {
	told = true; known = true;
	if
	:: covers && open == kept -> open = delivered
	:: else
	fi
}

inline speaks(a) {
	i = 0;
	do
	:: i < N -> call[i] = call[i] || i != a; i++
	:: else -> break
	od;
	silence_runs = false; spoke = true
}

/* The fence: what comes under a number that is over moves nothing. */
#ifdef NO_FENCE
#define holds (holder == who)
#else
#define holds (holder == who && !over)
#endif

inline under_turn() {
	if
	:: !holds -> skip /* late: kept, and moves nothing */
	:: else ->
		moved_late = moved_late || over;
		tell();
		if
		:: aside == who ->
			if
			:: what == says || what == finishes || what == ends -> aside_over(who)
			:: what == passes || what == finishes_quietly -> aside = NOBODY; new_message(true); take(who, e_aside_dropped)
			:: else
			fi
		:: aside != who && what == is_ready ->
			if
			:: st[who] == WAITING && stopped -> skip
			:: else -> take(who, e_wait_resolved)
			fi
		:: aside != who && what == passes -> take(who, e_passed)
		:: aside != who && what == waits -> take(who, e_wait_asked)
		:: aside != who && what == finishes -> speaks(who); finish(who, e_completed, e_completed_alone, e_completed_empty, e_completed_empty_alone)
		:: aside != who && what == finishes_quietly -> finish(who, e_completed, e_completed_alone, e_completed_empty, e_completed_empty_alone)
		:: aside != who && what == says && st[who] == ACTIVE -> speaks(who)
		:: aside != who && what == says && st[who] == ACTIVE -> speaks(who); silence_runs = true /* nothing reports the end of its answers */
		:: aside != who && what == ends && st[who] == ACTIVE -> silence_runs = true
		:: else
		fi
	fi
}

/* A message to all is answered without a turn, or lapses: it moves nothing. Where nobody is there
 * it is anybody's. */
inline to_all() {
	some = false;
	i = 0;
	do
	:: i < N -> some = some || (member[i] && online(i)); i++
	:: else -> break
	od;
	if
	:: !some -> new_message(false)
	:: else
	fi
}

/* Whoever is next gets the turn: it stands behind everything that happens. */
inline rouse() {
	if
	:: more && aside == NOBODY -> more = false; new_message(true)
	:: else
	fi;
	if
	:: holder == NOBODY && aside == NOBODY && rests != NOBODY && (fresh || due(rests)) -> take(rests, e_roused)
	:: else
	fi
}

inline hand_on() {
	i = 0;
	do
	:: i < lined && !(due(queue[i]) && may(queue[i])) -> i++
	:: else -> break
	od;
	if
	:: holder == NOBODY && aside == NOBODY && i < lined -> take(queue[i], e_granted)
	:: else
	fi
}

inline decide() {
	if
	:: what == connects || what == restarts ->
		here[who] = true;
		if
		:: off[who] -> take(who, e_connected_inert)
		:: !off[who] && what == connects -> comes(who, e_connected)
		:: else -> comes(who, e_restarted)
		fi
	:: what == goes -> here[who] = false; leaves(who, e_disconnected)
	:: what == breaks -> here[who] = false; leaves(who, e_crashed)
	:: what == misses -> here[who] = false; leaves(who, e_heartbeat_missed)
	:: what == is_disabled -> off[who] = true; leaves(who, e_disabled)
	:: what == is_enabled ->
		off[who] = false;
		if
		:: here[who] -> comes(who, e_enabled)
		:: else -> take(who, e_enabled_away)
		fi
	:: what == assigned_to -> assign(who)
	:: what == removed_from -> take(who, e_removed)
	:: what == is_granted && aside == who -> skip /* refused: it answers a person first */
	:: what == is_granted && aside != who ->
		if
		:: holder != NOBODY -> take(holder, e_displaced)
		:: else
		fi;
		if
		:: st[who] == IDLE -> second(who); welcome(who); take(who, e_assigned)
		:: else
		fi;
		take(who, e_granted)
	:: what == is_skipped -> take(holder, e_skipped)
	:: what == sent_on_way -> take(holder, e_sent_on)
	:: what == sent_to_queue -> take(holder, e_sent_back)
	:: what == says_to_queue -> new_message(false)
	:: what == says_into -> new_message(true)
	:: what == says_to_all -> to_all()
	:: what == interrupts -> interrupt()
	:: what == learns -> known = true
	:: what == is_told -> tell()
	:: what == is_given -> given = true; open = delivered
	:: what == answers -> aside_over(who)
	:: what == turn_time -> take(holder, e_timed_out)
	:: what == wait_time -> take(holder, e_wait_timed_out)
	:: what == silence_time -> silence_runs = false; finish(holder, e_fell_silent, e_fell_silent_alone, e_fell_silent_empty, e_fell_silent_empty_alone)
	:: what == aside_time -> lead_lost(aside)
	:: else -> under_turn()
	fi;
	do
	:: fresh -> renew()
	:: !fresh && next < last ->
		j = next_who[next];
		look(j, next_event[next]);
		next++;
		if
		:: acts & REFUSED -> skip
		:: else -> st[j] = to; act(j)
		fi
	:: !fresh && next == last && phase == 0 -> phase = 1; next = 0; last = 0; rouse()
	:: !fresh && next == last && phase == 1 -> phase = 2; next = 0; last = 0; hand_on()
	:: else -> break
	od;
	fired = (what == turn_time || what == wait_time || what == silence_time || what == aside_time);
	what = 0; who = 0; over = false; to = 0; acts = 0; i = 0; j = 0; some = false; halted = false;
	next = 0; last = 0; phase = 0;
	next_who[0] = 0; next_who[1] = 0; next_who[2] = 0; next_who[3] = 0; next_who[4] = 0;
	next_event[0] = 0; next_event[1] = 0; next_event[2] = 0; next_event[3] = 0; next_event[4] = 0
}

/* What may happen. */
inline choose() {
	select_who();
	if
	/* Agents come and go. */
	:: !here[who] -> what = connects
	:: !here[who] -> what = restarts /* after a crash: whether it was one makes no other difference */
	:: here[who] -> what = goes
	:: here[who] -> what = breaks
	:: here[who] -> what = misses
	/* They speak under the turn that they know of, and under ones that are over. */
	:: holder == who && known -> act_in_turn()
	:: holder == who -> act_in_turn(); over = true
	:: aside == who && holder != who -> what = answers
	/* Errands are done. */
	:: holder == who && st[who] == ACTIVE && !known -> what = learns
	:: holder == who && st[who] == ACTIVE && !told -> what = is_told
	:: holder == who && st[who] == ACTIVE && told && aside != who && open == kept && into && !covers && !given && !has[who] -> what = is_given
	/* Time passes. */
	:: holder == who && turn_runs -> what = turn_time
	:: holder == who && wait_runs -> what = wait_time
	:: holder == who && silence_runs -> what = silence_time
	:: aside == who && aside_runs -> what = aside_time
	/* People. */
	:: who == N - 1 && !off[who] -> what = is_disabled /* one stands for all */
	:: who == N - 1 && off[who] -> what = is_enabled
	:: what = assigned_to
	:: member[who] -> what = removed_from
	:: member[who] && online(who) && holder != who && patience > 0 -> what = is_granted; patience--
	:: holder == who -> what = is_skipped
	:: holder == who && st[who] == WAITING -> what = sent_on_way
	:: holder == who && st[who] == WAITING -> what = sent_to_queue
	:: who == 0 && open != kept -> what = says_to_queue
	:: who == 0 && open != kept -> what = says_into
	:: who == 0 && open != kept -> what = says_to_all
	:: who == 0 && open != kept && patience > 0 -> what = interrupts; patience--
	fi
}

inline select_who() {
	if
	:: who = 0
	:: who = 1
#if N > 2
	:: who = 2
#endif
#if N > 3
	:: who = 3
#endif
	fi
}

inline act_in_turn() {
	if
	:: what = says
	:: what = finishes
	:: what = finishes_quietly
	:: what = ends
	:: what = passes
	:: what = waits
	:: what = is_ready
	fi
}

active proctype channel() {
	do
	:: atomic { choose(); d_step { decide() } }
	od
}

/* The promises. */
#define free(a) ((st[a] == QUEUED || rests == a) && due(a) && may(a))
#define pending(a) (st[a] == QUEUED && due(a) && may(a))
#if N == 2
#define turns (has_turn(0) + has_turn(1))
#define some_free (free(0) || free(1))
#else
#define turns (has_turn(0) + has_turn(1) + has_turn(2))
#define some_free (free(0) || free(1) || free(2))
#endif
#define one_or_none (turns <= 1 && (turns == 0) == (holder == NOBODY))
#define idle_for_nothing (holder == NOBODY && aside == NOBODY && some_free)
#define paused (holder != NOBODY && st[holder] == WAITING)
#define time_passes ([] <> (fired || !clock_armed))

/* One agent at most is ACTIVE or WAITING, and then it is the one that holds the turn. */
ltl one_holder { [] one_or_none }

/* Nothing moves under a number that is over. */
ltl fenced { [] !moved_late }

/* Where somebody has something to answer, the channel is not parked. */
ltl goes_on { [] !idle_for_nothing }

/* All three of them at once. */
ltl safe { [] (one_or_none && !moved_late && !idle_for_nothing) }

/* Who is queued, has something to answer and stays gets the turn, if only time passes. */
ltl turn_comes { time_passes -> [] <> !pending(0) }
ltl turn_comes_to_last { time_passes -> [] <> !pending(N - 1) }

/* A channel does not wait for ever. */
ltl wait_ends { time_passes -> [] <> !paused }
