// The crew: its members and which of them are awake.
//
// A change carries a whole document, so a face and the main button change with the change. The server
// derives the lead's state and the notices, and the page requests them again, one request at a time.
// Each document is a signal.

import { buttonOf, statusAt } from './words.js';
import * as api from '../shell/api.js';
import { batch, computed, signal } from '../shell/lib.js';
import { Refetch } from '../shell/refetch.js';
import { answers, seenUntil } from '../shell/connection.js';
import { place, LEAD } from '../shell/router.js';
import { readLastWords } from './lastwords.js';
import { loadNewMessages } from './transcript.js';

/** @typedef {import('../shell/api.js').Change} Change */
/** @typedef {import('../shell/api.js').Document} Document */
/** @typedef {import('../shell/lib.js').Signal<Document>} DocumentCell */

/** Time between two requests while another part of the page is open: only the count is shown then. */
const ASIDE_REST_MS = 3000;

/** The lead's seat, in the middle. */
export const LEAD_SEAT = 4;
export const SEATS = [0, 1, 2, 3, 4, 5, 6, 7, 8];

const NO_LEAD = { agent: '', session: '', state: 'asleep', why: '', reported_at: null, seat: LEAD_SEAT };

/** @type {Map<string, DocumentCell>} */
const cells = new Map();
let asOf = 0;    // the sequence of the last answer
let touched = 0; // the sequence of the last change

export const crewKnown = signal(false);
export const crewWrong = signal('');
/** Whether the page asks for confirmation before the crew is put to sleep. */
export const sure = signal(false);
export const crew = signal({ inProgress: '', size: 8, soulsLeftOut: 0, notices: /** @type {api.CrewNotice[]} */ ([]) });
export const lead = signal(/** @type {api.CrewLead} */ (NO_LEAD));
/** Members that have not expired, by seat. */
export const members = signal(/** @type {string[]} */ ([]));

/** @param {string} id @returns {DocumentCell | undefined} */
export const documentCell = (id) => cells.get(id);
/** A member by its id, or, in a link, by its name. @param {string} who @returns {string} an id, LEAD, or who it was */
export function memberOf(who) {
  if (who === lead.value.agent) return LEAD;
  if (!who || cells.has(who)) return who;
  for (const [id, c] of cells) if (c.value.name === who) return id;
  return who;
}

/** The member on a seat. @param {number} seat */
export const onSeat = (seat) => members.value.find((id) => cells.get(id)?.value.gridPosition === seat) ?? '';

/** Members without a seat of their own; Fairlead itself assigns none. */
export const seatless = computed(() => members.value.filter((id) => {
  const seat = cells.get(id)?.value.gridPosition ?? -1;
  return seat === LEAD_SEAT || !SEATS.includes(seat) || onSeat(seat) !== id;
}));

export const tally = computed(() => {
  const n = { alive: 0, sleeping: 0, unknown: 0, hatching: 0, all: members.value.length };
  for (const id of members.value) {
    const doc = cells.get(id)?.value;
    const status = doc && statusAt(doc, seenUntil.value + api.skew.ms);
    if (status === 'alive' || status === 'sleeping' || status === 'hatching') n[status]++; else n.unknown++;
  }
  return n;
});

/** The main button for the members that are shown; empty: they are not known yet. */
export const button = computed(() => (crewKnown.value ? buttonOf(members.value.map((id) => cells.get(id)?.value.status ?? ''), crew.value.inProgress) : ''));

/** Members that are awake; 0 while the page has no connection. */
export const awake = computed(() => (answers.value ? tally.value.alive : 0));

/** @param {Document} a @param {Document} b */
const same = (a, b) => /** @type {(keyof Document)[]} */ (Object.keys({ ...a, ...b })).every((k) => (k === 'faceVariant' ? a[k]?.eyes === b[k]?.eyes && a[k]?.mouth === b[k]?.mouth : a[k] === b[k]));

/** @param {Document} doc */
function put(doc) {
  const c = cells.get(doc.id);
  if (!c) cells.set(doc.id, signal(doc));
  else if (!same(c.peek(), doc)) c.value = doc;
}

function seatAll() {
  const order = [...cells.values()].map((c) => c.peek()).filter((d) => d.status !== 'expired')
    .sort((a, b) => a.gridPosition - b.gridPosition || (a.id < b.id ? -1 : 1)).map((d) => d.id);
  if (order.join('\n') !== members.peek().join('\n')) members.value = order;
}

/** Applies the whole crew as of one place in the journal, unless the page knows something newer. @param {api.Crew} view */
export function applyCrew(view) {
  if (view.head < touched || view.head < asOf) return;
  asOf = view.head;
  batch(() => {
    const docs = view.agents ?? [];
    const ids = new Set(docs.map((d) => d.id));
    for (const id of cells.keys()) if (!ids.has(id)) cells.delete(id);
    for (const d of docs) put(soulKept(d, view));
    seatAll();
    crew.value = { inProgress: view.in_progress, size: view.size, soulsLeftOut: view.souls_left_out ?? 0, notices: view.notices ?? [] };
    lead.value = view.lead ?? NO_LEAD;
    crewKnown.value = true;
    crewWrong.value = '';
  });
}

/** Keeps a known soul that the answer left out; a soul never changes. @param {Document} d @param {api.Crew} view */
const soulKept = (d, view) => (view.souls_left_out && !d.individuationArtifact ? { ...d, individuationArtifact: cells.get(d.id)?.peek().individuationArtifact ?? '' } : d);

const list = new Refetch(async () => {
  try { applyCrew(await api.crew()); } catch (err) {
    if (!crewKnown.peek()) crewWrong.value = err instanceof Error ? err.message : String(err);
    throw err;
  }
});
const aside = new Refetch(async () => { await list.ask(); }, ASIDE_REST_MS);

/** Requests the crew again; soon: a person waits for it. @param {boolean} [soon] */
export function refreshCrew(soon = false) {
  list.want(soon);
  loadNewMessages();
  readLastWords();
}

export function openCrew() {
  list.want(true);
  readLastWords();
}

export function forgetCrew() {
  batch(() => {
    cells.clear();
    asOf = touched = 0;
    members.value = [];
    lead.value = NO_LEAD;
    crewKnown.value = false;
  });
}

/** The document after a change. The change carries all of its state; the identity only if that was set. @param {string} id @param {any} set @returns {Document} */
function reduce(id, set) {
  const was = cells.get(id)?.peek() ?? { id, status: '', name: null, color: '', colorName: '', gender: '', gridPosition: -1, faceVariant: null, individuationArtifact: '', createdAt: '', lastAliveAt: null, lastSessionId: null };
  const who = set.identity;
  const text = (/** @type {unknown} */ v) => (typeof v === 'string' ? v : '');
  return {
    ...was, status: text(set.status), createdAt: text(set.created_at) || was.createdAt, lastAliveAt: text(set.last_alive_at) || null, lastSessionId: text(set.last_session) || null,
    ...(who && {
      name: text(who.name) || null, color: text(who.color), colorName: text(who.color_name), gender: text(who.gender), gridPosition: Number(who.seat),
      faceVariant: { eyes: text(who.face?.eyes), mouth: text(who.face?.mouth) }, individuationArtifact: text(who.soul),
    }),
  };
}

const STAGES = new Set(['summoning', 'asking', 'waking']);

/** Applies what a change says of the lead; the rest comes with the next answer. @param {any} told */
function applyLead(told) {
  const now = lead.peek(), reported = typeof told.reported === 'string' ? told.reported : null;
  crew.value = { ...crew.peek(), inProgress: STAGES.has(told.stage) ? told.stage : '' };
  if (reported && told.session && told.session === now.session) lead.value = { ...now, state: 'heard', reported_at: reported };
}

/** Applies changes of the journal. @param {Change[]} changes */
export function applyCrewChanges(changes) {
  let mine = false, words = false;
  batch(() => {
    const { agent, state } = lead.peek();
    for (const ch of changes) {
      if (ch.entity.startsWith('crew/')) {
        if (ch.data?.crew?.words) { words = true; continue; }
        mine = true;
        touched = Math.max(touched, ch.seq);
        const set = ch.data?.crew?.doc;
        const told = ch.data?.crew?.lead;
        if (set && crewKnown.peek() && ch.seq > asOf) put(reduce(ch.entity.slice('crew/'.length), set));
        if (told && crewKnown.peek() && ch.seq > asOf) applyLead(told);
      } else if (ch.entity.startsWith('session/')) {
        if (agent && (state === 'waits' || ch.entity === `session/${agent}`)) mine = true;
      } else if (ch.machine === 'turn') words = true;
    }
    if (mine) seatAll();
  });
  if (words) { loadNewMessages(); readLastWords(); }
  if (mine) (place.peek() === 'crew' ? list : aside).want();
}
