// The past of steps as time spans: each attempt of each iteration, and each wait for a person.
// Read from the changes of the journal.

import * as api from '../shell/api.js';
import { signal } from '../shell/lib.js';

/** @typedef {import('../shell/api.js').Change} Change */
/** @typedef {{seq: number, from: number, to: number | null, kind: 'work' | 'wait', outcome: string, attempt: number, iteration: number}} Span times in ms since 1970; outcome: the state afterwards */

/** Spans kept for one step; more cannot be drawn. */
const SPANS_MAX = 200;
/** Changes read for the past of one step. */
const PAST_TAIL = 500;
/** Steps whose past is read when a run is opened; for the others the page shows what the feed brought. */
const PASTS_MAX = 24;
/** Runs for which spans are kept. */
const RUNS_MAX = 8;

/** @type {Map<string, Map<string, Span[]>>} */
const byRun = new Map();
/** The newest session of each step. @type {Map<string, string>} */
const sessions = new Map();
/** Steps for which the session is kept. */
const SESSIONS_MAX = 20_000;
/** @type {Set<string>} */
const asked = new Set();
/** Increases with every change of a span. */
export const trailed = signal(0);

/** @param {string} run @param {string} step @returns {Span[]} */
export const spans = (run, step) => byRun.get(run)?.get(step) ?? [];

/** The session of the step's last attempt, if the page has seen it. @param {string} run @param {string} step */
export const sessionOf = (run, step) => sessions.get(`${run}/${step}`) ?? '';

/** @param {Change} ch */
function rememberSession(ch) {
  const id = ch.data?.session?.id;
  if (typeof id !== 'string' || !ch.entity.startsWith('run/')) return;
  if (sessions.size >= SESSIONS_MAX) sessions.clear();
  sessions.set(ch.entity.slice('run/'.length), id);
}

export function forgetTrail() {
  byRun.clear();
  sessions.clear();
  asked.clear();
  trailed.value++;
}

/**
 * The steps that a change moves: usually one; some rules move many.
 * @param {Change} ch @returns {{run: string, step: string, from: string, to: string, attempt: number, iteration: number}[]}
 */
export function movesOf(ch) {
  const [, run, step] = ch.entity.split('/');
  const body = ch.data?.run;
  if (!run || !body) return [];
  const value = body.step?.value;
  if (step && value) return [{ run, step, from: ch.from, to: ch.to, attempt: Number(value.attempts ?? 0), iteration: Number(value.iteration ?? 0) }];
  const many = body.reset?.moves ?? body.moved?.moves;
  if (!Array.isArray(many)) return [];
  return many.map((m) => ({ run, step: String(m.step), from: String(m.from), to: body.moved?.to ?? 'PENDING', attempt: 0, iteration: 0 }));
}

/** @type {Record<string, Span['kind']>} */
const KINDS = { RUNNING: 'work', WAITING_ON_HUMAN: 'wait' };

/** @param {Change[]} changes in order */
export function addTrail(changes) {
  for (const ch of changes) {
    const at = Date.parse(ch.time);
    rememberSession(ch);
    for (const m of movesOf(ch)) {
      let run = byRun.get(m.run);
      if (!run) {
        byRun.set(m.run, (run = new Map()));
        if (byRun.size > RUNS_MAX) byRun.delete(/** @type {string} */ (byRun.keys().next().value));
      }
      const old = run.get(m.step) ?? [];
      if (old.some((s) => s.seq >= ch.seq)) continue; // applied already
      run.set(m.step, advance(old, m, at, ch.seq).slice(-SPANS_MAX));
    }
  }
  trailed.value++;
}

/** @param {Span[]} list @param {ReturnType<typeof movesOf>[0]} m @param {number} at @param {number} seq @returns {Span[]} */
function advance(list, m, at, seq) {
  const last = list[list.length - 1];
  const kind = KINDS[m.to];
  if (last && last.to === null) {
    if (kind === last.kind && m.attempt === last.attempt && m.iteration === last.iteration) return [...list.slice(0, -1), { ...last, seq }];
    list = [...list.slice(0, -1), { ...last, to: at, outcome: m.to, seq }];
  }
  return kind ? [...list, { seq, from: at, to: null, kind, outcome: '', attempt: m.attempt, iteration: m.iteration }] : list;
}

/**
 * Reads the past of the open run's steps that have begun, up to PASTS_MAX of them.
 * @param {string} run @param {import('../shell/api.js').StepView[]} steps
 */
export function wantTrail(run, steps) {
  let budget = PASTS_MAX;
  for (const s of steps) {
    if (s.attempts < 1 && !s.iteration_count) continue;
    if (budget-- <= 0) return;
    void readPast(run, s.id);
  }
}

/** @param {string} run @param {string} step */
export async function readPast(run, step) {
  const key = `${run}/${step}`;
  if (asked.has(key)) return;
  asked.add(key);
  try {
    const [own, all] = await Promise.all([api.journal({ entity: `run/${key}`, tail: PAST_TAIL }), resets(run)]);
    const changes = [...(own.changes ?? []), ...all].sort((a, b) => a.seq - b.seq);
    /** @type {Span[]} */
    let list = [];
    own.changes?.forEach(rememberSession);
    for (const ch of changes) for (const m of movesOf(ch)) if (m.step === step) list = advance(list, m, Date.parse(ch.time), ch.seq);
    let known = byRun.get(run);
    if (!known) byRun.set(run, (known = new Map()));
    const seen = known.get(step)?.at(-1)?.seq ?? 0;
    if (list.length > 0 && (list.at(-1)?.seq ?? 0) < seen) asked.delete(key); // the feed was faster: read again next time
    else if (list.length > 0) known.set(step, list.slice(-SPANS_MAX));
    trailed.value++;
  } catch { asked.delete(key); /* the feed's changes are shown all the same */ }
}

/** @type {Map<string, Promise<Change[]>>} */
const resetsOf = new Map();

/** Changes that move many steps belong to the run's entity. @param {string} run */
function resets(run) {
  let found = resetsOf.get(run);
  if (!found) {
    found = api.journal({ entity: `run/${run}`, tail: PAST_TAIL }).then((page) => page.changes ?? []);
    resetsOf.set(run, found);
    setTimeout(() => resetsOf.delete(run), 2000);
  }
  return found;
}
