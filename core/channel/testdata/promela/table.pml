/* The table of turns, written from turn.Table: UPDATE=1 go test ./core/channel */

mtype:state = { OFFLINE, IDLE, QUEUED, ACTIVE, WAITING };

#define e_aside_answered 1
#define e_aside_dropped 2
#define e_asked_itself 3
#define e_assigned 4
#define e_completed 5
#define e_completed_alone 6
#define e_completed_empty 7
#define e_completed_empty_alone 8
#define e_connected 9
#define e_connected_inert 10
#define e_crashed 11
#define e_disabled 12
#define e_disconnected 13
#define e_displaced 14
#define e_enabled 15
#define e_enabled_away 16
#define e_fell_silent 17
#define e_fell_silent_alone 18
#define e_fell_silent_empty 19
#define e_fell_silent_empty_alone 20
#define e_gone_inert 21
#define e_granted 22
#define e_heartbeat_missed 23
#define e_interrupted 24
#define e_limit_reached 25
#define e_passed 26
#define e_removed 27
#define e_restarted 28
#define e_roused 29
#define e_second_came 30
#define e_sent_back 31
#define e_sent_on 32
#define e_skipped 33
#define e_timed_out 34
#define e_wait_asked 35
#define e_wait_resolved 36
#define e_wait_timed_out 37

#define COUNT_PASS 1
#define PAUSE_TURN_TIMER 2
#define CANCEL_WORK 4
#define CLOSE_MESSAGES 8
#define END_TURN 16
#define JOIN_QUEUE 32
#define ANNOUNCE_TIMEOUT 64
#define LEAVE_ROTATION 128
#define LOSE_TURN 256
#define LEAVE_QUEUE 512
#define REST 1024
#define START_WAIT_TIMER 2048
#define NOTE_CONTEXT 4096
#define ANNOUNCE_DISCONNECT 8192
#define STOP_WAIT_TIMER 16384
#define RESUME_TURN_TIMER 32768
#define GO_ON 65536
#define TAKE_TURN 131072
#define START_TURN_TIMER 262144
#define REFUSED 524288

/* The rule for an event in an agent's state. */
inline look(a, e) {
	if
	:: st[a] == OFFLINE && e == e_assigned -> to = OFFLINE; acts = 0 /* T2 */
	:: st[a] == OFFLINE && e == e_connected -> to = IDLE; acts = 0 /* T1 */
	:: st[a] == OFFLINE && e == e_connected_inert -> to = OFFLINE; acts = 0 /* T20 */
	:: st[a] == OFFLINE && e == e_disabled -> to = OFFLINE; acts = 0 /* T20 */
	:: st[a] == OFFLINE && e == e_enabled -> to = IDLE; acts = 0 /* T21 */
	:: st[a] == OFFLINE && e == e_enabled_away -> to = OFFLINE; acts = 0 /* T21 */
	:: st[a] == OFFLINE && e == e_gone_inert -> to = OFFLINE; acts = 0 /* T20 */
	:: st[a] == OFFLINE && e == e_removed -> to = OFFLINE; acts = LEAVE_ROTATION /* T5 */
	:: st[a] == OFFLINE && e == e_restarted -> to = IDLE; acts = 0 /* T18 */
	:: st[a] == IDLE && e == e_assigned -> to = QUEUED; acts = JOIN_QUEUE /* T2 */
	:: st[a] == IDLE && e == e_crashed -> to = OFFLINE; acts = LEAVE_QUEUE | NOTE_CONTEXT /* T3 */
	:: st[a] == IDLE && e == e_disabled -> to = OFFLINE; acts = LEAVE_QUEUE /* T20 */
	:: st[a] == IDLE && e == e_disconnected -> to = OFFLINE; acts = LEAVE_QUEUE /* T3 */
	:: st[a] == IDLE && e == e_heartbeat_missed -> to = OFFLINE; acts = LEAVE_QUEUE | NOTE_CONTEXT /* T3 */
	:: st[a] == IDLE && e == e_removed -> to = IDLE; acts = LEAVE_ROTATION /* T5 */
	:: st[a] == IDLE && e == e_roused -> to = QUEUED; acts = JOIN_QUEUE /* T19 */
	:: st[a] == IDLE && e == e_second_came -> to = QUEUED; acts = JOIN_QUEUE /* T2 */
	:: st[a] == QUEUED && e == e_crashed -> to = OFFLINE; acts = LEAVE_QUEUE | NOTE_CONTEXT /* T6 */
	:: st[a] == QUEUED && e == e_disabled -> to = OFFLINE; acts = LEAVE_QUEUE /* T20 */
	:: st[a] == QUEUED && e == e_disconnected -> to = OFFLINE; acts = LEAVE_QUEUE | NOTE_CONTEXT /* T6 */
	:: st[a] == QUEUED && e == e_granted -> to = ACTIVE; acts = TAKE_TURN | START_TURN_TIMER /* T4 */
	:: st[a] == QUEUED && e == e_heartbeat_missed -> to = OFFLINE; acts = LEAVE_QUEUE | NOTE_CONTEXT /* T6 */
	:: st[a] == QUEUED && e == e_removed -> to = IDLE; acts = LEAVE_ROTATION /* T5 */
	:: st[a] == ACTIVE && e == e_aside_answered -> to = ACTIVE; acts = RESUME_TURN_TIMER | GO_ON /* T12 */
	:: st[a] == ACTIVE && e == e_aside_dropped -> to = ACTIVE; acts = RESUME_TURN_TIMER | GO_ON /* T12 */
	:: st[a] == ACTIVE && e == e_completed -> to = QUEUED; acts = CLOSE_MESSAGES | END_TURN | JOIN_QUEUE /* T7 */
	:: st[a] == ACTIVE && e == e_completed_alone -> to = IDLE; acts = CLOSE_MESSAGES | END_TURN | REST /* T8 */
	:: st[a] == ACTIVE && e == e_completed_empty -> to = QUEUED; acts = END_TURN | JOIN_QUEUE | NOTE_CONTEXT /* T7 */
	:: st[a] == ACTIVE && e == e_completed_empty_alone -> to = IDLE; acts = END_TURN | REST | NOTE_CONTEXT /* T8 */
	:: st[a] == ACTIVE && e == e_crashed -> to = OFFLINE; acts = LOSE_TURN | LEAVE_QUEUE | NOTE_CONTEXT | ANNOUNCE_DISCONNECT /* T11 */
	:: st[a] == ACTIVE && e == e_disabled -> to = OFFLINE; acts = CANCEL_WORK | LOSE_TURN | LEAVE_QUEUE /* T20 */
	:: st[a] == ACTIVE && e == e_disconnected -> to = OFFLINE; acts = LOSE_TURN | LEAVE_QUEUE | NOTE_CONTEXT | ANNOUNCE_DISCONNECT /* T11 */
	:: st[a] == ACTIVE && e == e_displaced -> to = QUEUED; acts = CANCEL_WORK | END_TURN | JOIN_QUEUE /* T23 */
	:: st[a] == ACTIVE && e == e_fell_silent -> to = QUEUED; acts = CANCEL_WORK | CLOSE_MESSAGES | END_TURN | JOIN_QUEUE /* T7 */
	:: st[a] == ACTIVE && e == e_fell_silent_alone -> to = IDLE; acts = CANCEL_WORK | CLOSE_MESSAGES | END_TURN | REST /* T8 */
	:: st[a] == ACTIVE && e == e_fell_silent_empty -> to = QUEUED; acts = CANCEL_WORK | END_TURN | JOIN_QUEUE | NOTE_CONTEXT /* T7 */
	:: st[a] == ACTIVE && e == e_fell_silent_empty_alone -> to = IDLE; acts = CANCEL_WORK | END_TURN | REST | NOTE_CONTEXT /* T8 */
	:: st[a] == ACTIVE && e == e_heartbeat_missed -> to = OFFLINE; acts = LOSE_TURN | LEAVE_QUEUE | NOTE_CONTEXT | ANNOUNCE_DISCONNECT /* T11 */
	:: st[a] == ACTIVE && e == e_interrupted -> to = WAITING; acts = PAUSE_TURN_TIMER | CANCEL_WORK /* T17 */
	:: st[a] == ACTIVE && e == e_limit_reached -> to = QUEUED; acts = CANCEL_WORK | END_TURN | JOIN_QUEUE | NOTE_CONTEXT /* X9 */
	:: st[a] == ACTIVE && e == e_passed -> to = QUEUED; acts = COUNT_PASS | END_TURN | JOIN_QUEUE /* T22 */
	:: st[a] == ACTIVE && e == e_removed -> to = IDLE; acts = CANCEL_WORK | END_TURN | LEAVE_ROTATION /* T16 */
	:: st[a] == ACTIVE && e == e_skipped -> to = QUEUED; acts = CANCEL_WORK | END_TURN | JOIN_QUEUE /* T23 */
	:: st[a] == ACTIVE && e == e_timed_out -> to = QUEUED; acts = CANCEL_WORK | END_TURN | JOIN_QUEUE | ANNOUNCE_TIMEOUT /* T9 */
	:: st[a] == ACTIVE && e == e_wait_asked -> to = WAITING; acts = PAUSE_TURN_TIMER | START_WAIT_TIMER | NOTE_CONTEXT /* T10 */
	:: st[a] == WAITING && e == e_aside_answered -> to = ACTIVE; acts = RESUME_TURN_TIMER | GO_ON /* T12 */
	:: st[a] == WAITING && e == e_asked_itself -> to = ACTIVE; acts = START_TURN_TIMER /* T17 */
	:: st[a] == WAITING && e == e_completed -> to = QUEUED; acts = CLOSE_MESSAGES | END_TURN | JOIN_QUEUE /* T7 */
	:: st[a] == WAITING && e == e_completed_alone -> to = IDLE; acts = CLOSE_MESSAGES | END_TURN | REST /* T8 */
	:: st[a] == WAITING && e == e_completed_empty -> to = QUEUED; acts = END_TURN | JOIN_QUEUE | NOTE_CONTEXT /* T7 */
	:: st[a] == WAITING && e == e_completed_empty_alone -> to = IDLE; acts = END_TURN | REST | NOTE_CONTEXT /* T8 */
	:: st[a] == WAITING && e == e_crashed -> to = OFFLINE; acts = LOSE_TURN | LEAVE_QUEUE | NOTE_CONTEXT | ANNOUNCE_DISCONNECT /* T14 */
	:: st[a] == WAITING && e == e_disabled -> to = OFFLINE; acts = CANCEL_WORK | LOSE_TURN | LEAVE_QUEUE /* T20 */
	:: st[a] == WAITING && e == e_disconnected -> to = OFFLINE; acts = LOSE_TURN | LEAVE_QUEUE | NOTE_CONTEXT | ANNOUNCE_DISCONNECT /* T14 */
	:: st[a] == WAITING && e == e_displaced -> to = QUEUED; acts = CANCEL_WORK | END_TURN | JOIN_QUEUE /* T23 */
	:: st[a] == WAITING && e == e_heartbeat_missed -> to = OFFLINE; acts = LOSE_TURN | LEAVE_QUEUE | NOTE_CONTEXT | ANNOUNCE_DISCONNECT /* T14 */
	:: st[a] == WAITING && e == e_limit_reached -> to = QUEUED; acts = CANCEL_WORK | END_TURN | JOIN_QUEUE | NOTE_CONTEXT /* X9 */
	:: st[a] == WAITING && e == e_removed -> to = IDLE; acts = CANCEL_WORK | END_TURN | LEAVE_ROTATION /* T16 */
	:: st[a] == WAITING && e == e_sent_back -> to = QUEUED; acts = CANCEL_WORK | END_TURN | JOIN_QUEUE /* T15 */
	:: st[a] == WAITING && e == e_sent_on -> to = ACTIVE; acts = STOP_WAIT_TIMER | RESUME_TURN_TIMER | GO_ON /* T15 */
	:: st[a] == WAITING && e == e_skipped -> to = QUEUED; acts = CANCEL_WORK | END_TURN | JOIN_QUEUE /* T23 */
	:: st[a] == WAITING && e == e_wait_resolved -> to = ACTIVE; acts = STOP_WAIT_TIMER | RESUME_TURN_TIMER | GO_ON /* T12 */
	:: st[a] == WAITING && e == e_wait_timed_out -> to = QUEUED; acts = CANCEL_WORK | END_TURN | JOIN_QUEUE /* T13 */
	:: else -> acts = REFUSED
	fi
}

/* The acts of a rule, in the order that every rule keeps. */
inline act(a) {
	if
	:: acts & COUNT_PASS -> count_pass(a)
	:: else
	fi;
	if
	:: acts & PAUSE_TURN_TIMER -> pause_turn_timer(a)
	:: else
	fi;
	if
	:: acts & CANCEL_WORK -> cancel_work(a)
	:: else
	fi;
	if
	:: acts & CLOSE_MESSAGES -> close_messages(a)
	:: else
	fi;
	if
	:: acts & END_TURN -> end_turn(a)
	:: else
	fi;
	if
	:: acts & JOIN_QUEUE -> join_queue(a)
	:: else
	fi;
	if
	:: acts & ANNOUNCE_TIMEOUT -> announce_timeout(a)
	:: else
	fi;
	if
	:: acts & LEAVE_ROTATION -> leave_rotation(a)
	:: else
	fi;
	if
	:: acts & LOSE_TURN -> lose_turn(a)
	:: else
	fi;
	if
	:: acts & LEAVE_QUEUE -> leave_queue(a)
	:: else
	fi;
	if
	:: acts & REST -> rest(a)
	:: else
	fi;
	if
	:: acts & START_WAIT_TIMER -> start_wait_timer(a)
	:: else
	fi;
	if
	:: acts & NOTE_CONTEXT -> note_context(a)
	:: else
	fi;
	if
	:: acts & ANNOUNCE_DISCONNECT -> announce_disconnect(a)
	:: else
	fi;
	if
	:: acts & STOP_WAIT_TIMER -> stop_wait_timer(a)
	:: else
	fi;
	if
	:: acts & RESUME_TURN_TIMER -> resume_turn_timer(a)
	:: else
	fi;
	if
	:: acts & GO_ON -> go_on(a)
	:: else
	fi;
	if
	:: acts & TAKE_TURN -> take_turn(a)
	:: else
	fi;
	if
	:: acts & START_TURN_TIMER -> start_turn_timer(a)
	:: else
	fi
}
