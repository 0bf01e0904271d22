// The agents and the team, as signals.
//
// There are two sources. A snapshot (GET /api/v1/agents) says what is true as of one place in
// the journal. Changes say what happened after it, and shell/reducer.js applies them. A change
// never moves an agent back behind the snapshot that it is shown with.

import { head } from '../shell/connection.js';
import { batch, signal } from '../shell/lib.js';
import { agentOf, fromSnapshot, isOpen, reduce, reduceHold, reduceSessions, teamOf } from '../shell/reducer.js';

/** @typedef {import('../shell/api.js').Agent} Agent */
/** @typedef {import('../shell/api.js').Change} Change */
/** @typedef {import('../shell/api.js').Session} Session */
/** @typedef {import('../shell/api.js').Verb} Verb */

/** Changes kept per agent for its history. A chosen time has the others. */
export const TRAIL_MAX = 300;
/** Changes of an agent, and of its sessions, that are read when it is opened. */
export const TRAIL_TAIL = 200;
/** Sessions kept per agent for the timeline in its row. */
export const RUNS_MAX = 64;

/** @typedef {{id: string, from: number, to: number | null, outcome: string, kind: string, for: string}} Run a session on the timeline; times in ms since 1970 */
/** @typedef {{verb: Verb, seq: number | null}} Pending an order that is not in the journal yet; seq: null until the server has answered */

/** One agent. Each part is a signal, so that a change redraws one row and no other. */
export class Cell {
  /** @param {string} name */
  constructor(name) {
    this.name = name;
    this.known = fromSnapshot(/** @type {Agent} */ ({ name, driver: '', desired_state: 'pause', current_state: 'pause', badge: 'IDLE' }));
    this.agent = signal(this.known.agent);
    this.trail = signal(/** @type {Change[]} */ ([]));
    this.runs = signal(/** @type {Run[]} */ ([]));
    this.sessions = signal(/** @type {Session[]} */ ([])); // the newest first
    this.pending = signal(/** @type {Pending | null} */ (null));
    this.asOf = 0;    // the sequence of the snapshot
    this.touched = 0; // the sequence of the last change
    this.readAt = 0;  // the browser's clock when evidence_age_ms was true
  }
}

/** @type {Map<string, Cell>} */
const cells = new Map();

export const names = signal(/** @type {string[]} */ ([]));
export const loaded = signal(false);
export const team = signal({ name: '', hold: false, note: '', stopping: false, noLeaderSince: '' });
export const holdPending = signal(false);
/** When the first change happened that the page knows, in ms since 1970. */
export const oldest = signal(Date.now());

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
function setTeam(s) {
  if (s.head < teamAsOf) return;
  teamAsOf = s.head;
  team.value = { name: s.team ?? '', hold: s.hold, note: s.hold_note ?? '', stopping: s.stopping, noLeaderSince: s.no_leader_since ?? '' };
}

/**
 * The whole team as of one place in the journal.
 * @param {import('../shell/api.js').Team} snapshot
 */
export function applyTeam(snapshot) {
  batch(() => {
    const agents = (snapshot.agents ?? []).filter((a) => !a.removed || a.session || a.sessions?.length);
    for (const a of agents) applyAgent(a, snapshot.head);
    const order = agents.map((a) => a.name);
    if (order.length !== names.peek().length || order.some((n, i) => names.peek()[i] !== n)) names.value = order;
    setTeam(snapshot);
    loaded.value = true;
  });
}

/**
 * One agent as the server derived it, unless the page knows something newer.
 * @param {Agent} agent @param {number} asOf the sequence that it is true at @returns {boolean} false: the page knows something newer
 */
export function applyAgent(agent, asOf) {
  const c = cellFor(agent.name);
  if (asOf < c.touched || asOf < c.asOf) return false;
  c.asOf = asOf;
  c.readAt = Date.now();
  const fresh = fromSnapshot(agent);
  // A snapshot ahead of the feed contains changes that the page has not seen, so what earlier
  // changes said may be out of date.
  const seen = head.peek() >= asOf;
  c.known = seen ? { ...fresh, control: c.known.control, limited: c.known.limited, queue: fresh.queue ?? c.known.queue, open: fresh.open ?? c.known.open } : fresh;
  c.agent.value = agent;
  settle(c, asOf);
  return true;
}

/** Removes the mark of an order that the journal holds by now. @param {Cell} c @param {number} seq */
function settle(c, seq) {
  const p = c.pending.peek();
  if (p && p.seq !== null && seq >= p.seq) c.pending.value = null;
}

/** The server answered an order with its place in the journal. @param {Cell} c @param {Verb} verb @param {number} seq */
export function ordered(c, verb, seq) {
  c.pending.value = head.peek() >= seq || c.asOf >= seq ? null : { verb, seq };
}

/** Forgets everything: the server has another journal than before. */
export function forget() {
  batch(() => {
    cells.clear();
    teamAsOf = 0;
    names.value = [];
    loaded.value = false;
  });
}

/** Reports of usage change no state, so the history leaves them out. @param {Change} ch */
export const isReport = (ch) => ch.from === ch.to && ch.trigger === 'reported';

/**
 * A batch of changes, in order. Redraws at most once.
 * @param {Change[]} changes
 * @returns {string[]} the agents about which the changes do not say everything; ask the server for them
 */
export function applyChanges(changes) {
  /** @type {Set<Cell>} */
  const touched = new Set();
  /** @type {Map<Cell, Change[]>} */
  const history = new Map();
  let last = head.peek();
  batch(() => {
    for (const ch of changes) {
      if (ch.seq > last) last = ch.seq;
      const set = teamOf(ch);
      if (set) applyTeamChange(ch, set).forEach((c) => touched.add(c));
      const name = agentOf(ch);
      if (!name) continue;
      const c = cellFor(name);
      touched.add(c);
      applyToCell(c, ch);
      if (!/^(control|session)\//.test(ch.entity)) continue;
      const list = history.get(c);
      if (list) list.push(ch); else history.set(c, [ch]);
    }
    history.forEach((list, c) => addHistory(c, list));
    for (const c of touched) if (c.known.agent !== c.agent.peek()) c.agent.value = c.known.agent;
    head.value = last;
    for (const c of cells.values()) if (c.pending.peek()) settle(c, last);
  });
  return [...touched].filter((c) => !c.known.complete || !c.known.agent.driver).map((c) => c.name);
}

/** @param {Change} ch @param {{hold: boolean, note: string, stopping: boolean}} set @returns {Cell[]} the agents that look different under the hold */
function applyTeamChange(ch, set) {
  if (ch.seq <= teamAsOf) return [];
  const held = team.peek().hold;
  team.value = { ...team.peek(), ...set };
  if (held === set.hold) return [];
  const all = [...cells.values()].filter((c) => ch.seq > c.asOf);
  for (const c of all) c.known = reduceHold(c.known, set);
  return all;
}

/** @param {Cell} c @param {Change} ch */
function applyToCell(c, ch) {
  c.touched = Math.max(c.touched, ch.seq);
  c.sessions.value = reduceSessions(c.sessions.peek(), ch);
  if (ch.seq <= c.asOf) return;
  const was = c.known.agent;
  c.known = reduce(c.known, ch, team.peek());
  if (c.known.agent.evidence_age_ms !== was.evidence_age_ms) c.readAt = Date.now();
}

/** @typedef {{channel: string, to: string, seq: number}} TurnMove to: empty if the agent left the channel */

/** The agent's state in its channels, from changes. @param {string} name @param {TurnMove[]} moves in order */
export function setTurns(name, moves) {
  const c = cells.get(name);
  const fresh = c ? moves.filter((m) => m.seq > c.asOf) : [];
  if (!c || fresh.length === 0) return;
  const turn = { ...c.known.agent.turn };
  for (const m of fresh) {
    if (m.to) turn[m.channel] = m.to; else delete turn[m.channel];
  }
  c.known = { ...c.known, agent: { ...c.known.agent, turn } };
  c.agent.value = c.known.agent;
}

/**
 * Adds changes to the history and the timeline only; they come from the feed or from the journal.
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
    if (isOpen(ch) && !known) runs = [...runs, { id: s.id, from: at, to: null, outcome: '', kind: String(s.kind ?? ''), for: String(s.for ?? '') }].sort((a, b) => a.from - b.from);
    if (!isOpen(ch) && known) runs = runs.map((r) => (r === known ? { ...r, to: at, outcome: String(s.outcome || 'ended') } : r));
  }
  return runs;
}

/**
 * Sessions as the server lists them, the newest first.
 * @param {Cell} c @param {Session[]} sessions @param {number} asOf the sequence that they are true at
 */
export function mergeSessions(c, sessions, asOf) {
  if (asOf >= c.touched) c.sessions.value = sessions;
  const byId = new Map(c.runs.peek().map((r) => [r.id, r]));
  for (const s of sessions) {
    const from = Date.parse(s.started_at ?? s.opened_at ?? '');
    if (!Number.isFinite(from)) continue;
    byId.set(s.id, { id: s.id, from, to: s.ended_at ? Date.parse(s.ended_at) : null, outcome: s.outcome ?? '', kind: s.kind, for: byId.get(s.id)?.for ?? '' });
  }
  for (const r of byId.values()) if (r.from < oldest.peek()) oldest.value = r.from;
  c.runs.value = [...byId.values()].sort((a, b) => a.from - b.from).slice(-RUNS_MAX);
}
