// Orders to agents. An order is shown as pending until the journal holds it. A refusal is shown
// with the server's reason.

import * as api from '../shell/api.js';
import { live } from '../shell/connection.js';
import { cell, holdPending, ordered } from './state.js';
import { plain } from '../shell/text.js';
import { notes, spoken } from '../shell/router.js';

/** @typedef {import('../shell/api.js').Verb} Verb */

/** @type {Record<Verb, string>} */
export const LABELS = { start: 'Start Agent', stop: 'Stop Agent', once: 'Run Single Session', cleanup: 'Run Cleanup Session' };

/** The note that goes with an order, as the seed's own example has it. @type {Record<Verb, string>} */
const NOTES = { start: 'Started via Mission Control', stop: 'Stopped via Mission Control', once: 'Single session via Mission Control', cleanup: 'Cleanup session via Mission Control' };

/** Notes shown at a time; a new one replaces the oldest. */
const NOTES_MAX = 4;
let noteID = 0;

/** @param {string} words */
const sentence = (words) => (/[.!?]$/.test(words) ? words : words + '.');

/** Shows why an order failed or was refused. @param {string} what @param {unknown} err */
export function tell(what, err) {
  const refusal = err instanceof api.Refusal;
  const body = refusal ? err.body : {};
  const text = plain(body.reason || (err instanceof Error ? err.message : err));
  const takes = Array.isArray(body.takes) && body.takes.length ? `Allowed now: ${body.takes.map((t) => plain(t, 60)).join(', ')}.` : '';
  const row = body.row ? ` (${plain(body.row, 20)})` : '';
  const note = {
    id: ++noteID,
    kind: /** @type {'refusal' | 'failure'} */ (refusal ? 'refusal' : 'failure'),
    title: refusal ? `Refused: ${what}${row}` : `Failed: ${what}`,
    text,
    more: [refusal && body.reason && err instanceof Error && !err.message.includes(body.reason) ? sentence(plain(err.message)) : '', takes].filter(Boolean).join(' '),
  };
  notes.value = [...notes.value, note].slice(-NOTES_MAX);
}

/** @param {number} id */
export const dismiss = (id) => { notes.value = notes.value.filter((n) => n.id !== id); };

/** @param {string} name @param {Verb} verb @param {string} [note] */
export async function command(name, verb, note = NOTES[verb]) {
  const c = cell(name);
  if (!c || c.pending.peek() || !live.peek()) return;
  c.pending.value = { verb, seq: null };
  try {
    const { seq } = await api.command(name, verb, note);
    ordered(c, verb, seq);
    spoken.value = `${LABELS[verb]}: ${plain(name, 80)}`;
  } catch (err) {
    c.pending.value = null;
    tell(`${LABELS[verb]}, ${plain(name, 80)}`, err);
  }
}

/** Sets or lifts the hold; the feed brings the change. @param {boolean} on @param {string} note */
export async function hold(on, note) {
  if (holdPending.peek() || !live.peek()) return;
  holdPending.value = true;
  try {
    await api.hold(on, note);
  } catch (err) {
    tell(on ? 'hold the team' : 'release the team', err);
  } finally {
    holdPending.value = false;
  }
}
