// The content of cards that is requested only when a card is shown: what a task has changed, and the
// last words of a session.

import * as api from '../shell/api.js';
import { signal } from '../shell/lib.js';
import { Terminal } from '../agents/ansi.js';

/** Contents kept; the oldest are forgotten. */
const KEPT_MAX = 200;
/** Facts requested of a session that failed. */
const FACTS = 60;

/** @template T @typedef {import('../shell/lib.js').Signal<{value?: T, wrong?: string}>} Content */

/** @type {Map<string, Content<any>>} */
const kept = new Map();

/** @template T @param {string} key @param {() => Promise<T>} ask @returns {Content<T>} */
function once(key, ask) {
  let found = kept.get(key);
  if (!found) {
    found = signal({});
    kept.set(key, found);
    for (const old of kept.keys()) { if (kept.size <= KEPT_MAX) break; kept.delete(old); }
    const to = found;
    ask().then((value) => { to.value = { value }; }, (err) => {
      to.value = { wrong: err instanceof Error ? err.message : String(err) };
      if (kept.get(key) === to) kept.delete(key); // it is asked for again with the next card
    });
  }
  return found;
}

/** What a task has changed. @param {string} id @param {string} version another one is requested again @returns {Content<api.TaskChanges>} */
export const changesOf = (id, version) => once(`changes ${id} ${version}`, () => api.taskChanges(id, {}));

/** Reads it again: an answer was refused. @param {string} id @param {string} version */
export function forgetChanges(id, version) { kept.delete(`changes ${id} ${version}`); }

/** The last lines that a session wrote or said. @param {string} session @param {number} most @returns {Content<string[]>} */
export const lastWords = (session, most) => once(`words ${session} ${most}`, async () => {
  const { facts } = await api.facts(session, undefined, { tail: FACTS });
  const terminal = new Terminal();
  const lines = (facts ?? []).flatMap((f) => terminal.write(`${f.detail || f.text || ''}\n`)).map((l) => l.text).filter((l) => l.trim() !== '');
  return lines.slice(-most);
});
