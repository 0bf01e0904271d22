// Orders to the crew. A member is shown awake only after the journal says so.

import * as api from '../shell/api.js';
import { applyCrew, refreshCrew } from './state.js';
import { size } from '../shell/format.js';
import { batch, signal } from '../shell/lib.js';
import { order, reasonOf } from '../shell/orders.js';
import { live } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { spoken } from '../shell/router.js';

/** Largest document sent, the same limit as the server's. */
const DOCUMENT_BYTES_MAX = 2 << 20;
/** Files accepted from one drop: a crew has eight members, and some files are tried twice. */
const FILES_MAX = 32;

const then = { done: (/** @type {{team?: api.Crew}} */ answer) => { if (answer?.team) applyCrew(answer.team); }, after: () => refreshCrew(true) };

export const summon = () => order('crew', 'summoned', () => api.orderCrew('summon', {}), then);
export const wake = () => order('crew', 'woken', () => api.orderCrew('wake', {}), then);
export const sleep = () => order('crew', 'sent to sleep', () => api.orderCrew('sleep', {}), then);
/** @param {string} id @param {string} name */
export const wakeOne = (id, name) => order(`wake ${id}`, `${name} is woken`, () => api.orderCrew('wake', { agents: [id] }), then);

/** The result for each dropped file. */
export const imported = signal(/** @type {{file: string, words: string, ok: boolean}[]} */ ([]));
export const importing = signal(false);

/** @param {File} file */
async function importOne(file) {
  if (file.size > DOCUMENT_BYTES_MAX) throw new Error(`${size(file.size)} are too many for a document: ${size(DOCUMENT_BYTES_MAX)} at most`);
  const doc = await api.importDocument(await file.text());
  return `${plain(doc.name ?? doc.id, 64)} sits on seat ${doc.gridPosition}, ${doc.status === 'unknown' ? 'not known to be awake yet' : plain(doc.status, 20)}`;
}

/** Imports documents one after the other. @param {Iterable<File>} files */
export async function importFiles(files) {
  const all = [...files];
  if (all.length === 0 || importing.peek() || !live.peek()) return;
  /** @type {typeof imported.value} */
  const results = [];
  importing.value = true;
  for (const file of all.slice(0, FILES_MAX)) {
    const name = plain(file.name, 80);
    try { results.push({ file: name, words: await importOne(file), ok: true }); }
    catch (err) { results.push({ file: name, words: reasonOf(err), ok: false }); }
  }
  if (all.length > FILES_MAX) results.push({ file: `${all.length - FILES_MAX} more`, words: `not read: ${FILES_MAX} at a time`, ok: false });
  batch(() => {
    importing.value = false;
    imported.value = results;
    spoken.value = `${results.filter((r) => r.ok).length} of ${results.length} imported`;
  });
  refreshCrew(true);
}
