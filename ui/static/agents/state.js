// What this page knows: a team, as signals.
//
// Two sources, with an order between them. A snapshot says what the server
// derived as of one place in the journal; changes say what happened since. A
// change never moves an agent back behind the snapshot it was shown with.

import { batch, computed, signal } from '../shell/lib.js';

/** @typedef {import('../shell/api.js').Agent} Agent */
/** @typedef {import('../shell/api.js').Change} Change */
/** @typedef {import('../shell/api.js').Verb} Verb */

/** Changes kept per agent for the history; older ones are fetched when somebody looks. */
export const TRAIL_MAX = 300;
/** Sessions kept per agent for the small trace in its row. */
const RUNS_MAX = 64;

/** @typedef {{id: string, from: number, to: number | null, outcome: string, kind: string}} Run times in ms since 1970 */
/** @typedef {{verb: Verb, seq: number | null}} Pending asked, and not yet in the journal */

/** One agent's cell: each part is a signal, so that a change draws one row again and no other. */
export class Cell {
  /** @param {string} name */
  constructor(name) {
    this.name = name;
    this.agent = signal(/** @type {Agent} */ ({ name, driver: '', desired_state: 'pause', current_state: 'pause', badge: 'IDLE' }));
    this.trail = signal(/** @type {Change[]} */ ([]));
    this.runs = signal(/** @type {Run[]} */ ([]));
    this.pending = signal(/** @type {Pending | null} */ (null));
    this.asOf = 0;    // the journal's place that agent is known at
    this.touched = 0; // the last change seen about it
    this.readAt = 0;  // our clock when evidence_age_ms was true
  }
}

/** @typedef {{phase: 'connecting' | 'live' | 'lost' | 'denied', since: number, retryAt: number, trying: boolean, words: string}} Connection */

/** @type {Map<string, Cell>} */
const cells = new Map();

export const names = signal(/** @type {string[]} */ ([]));
export const loaded = signal(false);
export const team = signal({ name: '', hold: false, note: '', stopping: false });
export const holdPending = signal(false);
export const connection = signal(/** @type {Connection} */ ({ phase: 'connecting', since: Date.now(), retryAt: 0, trying: true, words: '' }));
export const head = signal(0);
/** When the first thing happened that we know of. */
export const oldest = signal(Date.now());
/** Ticks once a second while somebody looks; everything that ages reads it. */
export const now = signal(Date.now());
export const live = computed(() => connection.value.phase === 'live');
/** Up to here we know what happened: now, or when the line was cut. */
export const seenUntil = computed(() => {
  const c = connection.value;
  return c.phase === 'lost' || c.phase === 'denied' ? c.since : now.value;
});

/** @param {string} name @returns {Cell | undefined} */
export const cell = (name) => cells.get(name);

/** @param {string} name */
function cellFor(name) {
  let c = cells.get(name);
  if (!c) cells.set(name, (c = new Cell(name)));
  return c;
}

let teamAsOf = 0;

/** What a snapshot says about the team itself. @param {import('../shell/api.js').Team} s */
export function setTeam(s) {
  if (s.head < teamAsOf) return;
  teamAsOf = s.head;
  team.value = { name: s.team ?? '', hold: s.hold, note: s.hold_note ?? '', stopping: s.stopping };
}

/**
 * The whole team as of one place in the journal.
 * @param {import('../shell/api.js').Team} snapshot
 */
export function applyTeam(snapshot) {
  batch(() => {
    const agents = (snapshot.agents ?? []).filter((a) => !a.removed || a.session);
    for (const a of agents) applyAgent(a, snapshot.head);
    const order = agents.map((a) => a.name);
    if (order.length !== names.peek().length || order.some((n, i) => names.peek()[i] !== n)) names.value = order;
    setTeam(snapshot);
    loaded.value = true;
  });
}

/**
 * One agent as the server derived it, unless we know something newer.
 * @param {Agent} agent @param {number} asOf @returns {boolean} false where it came too late
 */
export function applyAgent(agent, asOf) {
  const c = cellFor(agent.name);
  if (asOf < c.touched || asOf < c.asOf) return false;
  c.asOf = asOf;
  c.readAt = Date.now();
  c.agent.value = agent;
  const p = c.pending.peek();
  if (p && p.seq !== null && asOf >= p.seq) c.pending.value = null;
  return true;
}

/** Forget everything: the journal behind the page is another one. */
export function forget() {
  batch(() => {
    cells.clear();
    teamAsOf = 0;
    names.value = [];
    loaded.value = false;
  });
}

/** @type {Record<string, string>} */
const CURRENT = { resting: 'pause', continuous: 'continuous', run_once: 'run_once', run_cleanup: 'run_cleanup', backing_off: 'continuous' };
const STATES = new Set(['pause', 'continuous', 'run_once', 'run_cleanup']);

/** Does a session go on after this change? @param {Change} ch */
const going = (ch) => ch.to === 'opened' || ch.to === 'running';
/** Reports of usage say nothing about what state anything is in. @param {Change} ch */
const isReport = (ch) => ch.from === ch.to && ch.trigger === 'reported';

/** @param {string} entity */
export const agentOf = (entity) => entity.slice(entity.indexOf('/') + 1);

/**
 * A batch of changes, in order. Draws at most once.
 * @param {Change[]} changes
 * @returns {Set<string>} the agents they are about
 */
export function applyChanges(changes) {
  /** @type {Map<Cell, Change[]>} */
  const byCell = new Map();
  let last = head.peek();
  batch(() => {
    for (const ch of changes) {
      if (ch.seq > last) last = ch.seq;
      if (ch.machine === 'team' || ch.entity.startsWith('team/')) applyTeamChange(ch);
      if (!/^(control|session)\//.test(ch.entity)) continue;
      const c = cellFor(agentOf(ch.entity));
      const list = byCell.get(c);
      if (list) list.push(ch); else byCell.set(c, [ch]);
    }
    for (const [c, list] of byCell) applyToCell(c, list);
    head.value = last;
  });
  return new Set([...byCell.keys()].map((c) => c.name));
}

/** @param {Change} ch */
function applyTeamChange(ch) {
  const set = ch.data?.team;
  if (!set || ch.seq <= teamAsOf) return;
  team.value = { ...team.peek(), hold: set.hold?.on === true, note: String(set.hold?.note ?? ''), stopping: set.stopping === true };
}

/** @param {Cell} c @param {Change[]} list */
function applyToCell(c, list) {
  addHistory(c, list);
  let agent = c.agent.peek();
  for (const ch of list) {
    c.touched = Math.max(c.touched, ch.seq);
    if (ch.seq > c.asOf) agent = reduce(agent, ch);
  }
  if (agent !== c.agent.peek()) c.agent.value = agent;
}

/**
 * What one change says for certain about an agent; the rest comes with the next
 * snapshot of it.
 * @param {Agent} agent @param {Change} ch @returns {Agent}
 */
function reduce(agent, ch) {
  if (ch.entity.startsWith('session/')) {
    if (!going(ch)) return { ...agent, session: null };
    const s = ch.data?.session;
    if (typeof s?.id !== 'string') return agent;
    return { ...agent, session: { id: s.id, kind: String(s.kind ?? ''), pid: s.pid, started_at: s.started_at ?? null, phase: ch.to } };
  }
  const value = ch.data?.control?.value;
  const current = CURRENT[ch.to] ?? (STATES.has(value?.reported) ? value.reported : undefined);
  const desired = STATES.has(value?.wish?.desired) ? value.wish.desired : agent.desired_state;
  if (!current || (current === agent.current_state && desired === agent.desired_state)) return agent;
  return { ...agent, current_state: current, desired_state: desired, badge: current === 'pause' ? 'IDLE' : 'RUNNING' };
}

/** @typedef {{channel: string, to: string, seq: number}} TurnMove to: empty where it is no longer in the channel */

/** Where an agent stands in its channels now, as changes say it. @param {string} name @param {TurnMove[]} moves in order */
export function setTurns(name, moves) {
  const c = cells.get(name);
  const fresh = c ? moves.filter((m) => m.seq > c.asOf) : [];
  if (!c || fresh.length === 0) return;
  const turn = { ...c.agent.peek().turn };
  for (const m of fresh) {
    if (m.to) turn[m.channel] = m.to; else delete turn[m.channel];
  }
  c.agent.value = { ...c.agent.peek(), turn };
}

/**
 * History only: the trail and the trace, from the feed or from the journal.
 * @param {Cell} c @param {Change[]} list
 */
export function addHistory(c, list) {
  list = list.filter((ch) => !isReport(ch));
  if (list.length === 0) return;
  const old = c.trail.peek();
  const lastSeq = old.length ? old[old.length - 1].seq : 0;
  const fresh = list.every((ch) => ch.seq > lastSeq)
    ? [...old, ...list]
    : [...new Map([...old, ...list].map((ch) => [ch.seq, ch])).values()].sort((a, b) => a.seq - b.seq);
  c.trail.value = fresh.slice(-TRAIL_MAX);
  const began = Date.parse(list[0].time);
  if (began < oldest.peek()) oldest.value = began;
  const runs = traceOf(list.filter((ch) => ch.entity.startsWith('session/')), c.runs.peek());
  if (runs !== c.runs.peek()) c.runs.value = runs.slice(-RUNS_MAX);
}

/** @param {Change[]} list @param {Run[]} runs @returns {Run[]} */
function traceOf(list, runs) {
  for (const ch of list) {
    const s = ch.data?.session;
    if (typeof s?.id !== 'string') continue;
    const at = Date.parse(ch.time);
    const known = runs.find((r) => r.id === s.id);
    if (going(ch) && !known) runs = [...runs, { id: s.id, from: at, to: null, outcome: '', kind: String(s.kind ?? '') }].sort((a, b) => a.from - b.from);
    if (!going(ch) && known) runs = runs.map((r) => (r === known ? { ...r, to: at, outcome: String(s.outcome || 'ended') } : r));
  }
  return runs;
}

/**
 * Sessions as the server lists them; they know more than the feed does.
 * @param {Cell} c @param {import('../shell/api.js').Session[]} sessions
 */
export function mergeSessions(c, sessions) {
  const byId = new Map(c.runs.peek().map((r) => [r.id, r]));
  for (const s of sessions) {
    const from = Date.parse(s.started_at ?? s.opened_at ?? '');
    if (!Number.isFinite(from)) continue;
    byId.set(s.id, { id: s.id, from, to: s.ended_at ? Date.parse(s.ended_at) : null, outcome: s.outcome ?? '', kind: s.kind });
  }
  for (const r of byId.values()) if (r.from < oldest.peek()) oldest.value = r.from;
  c.runs.value = [...byId.values()].sort((a, b) => a.from - b.from).slice(-RUNS_MAX);
}
