// The open task: its changes, the rows of its files, and the comments of all rounds.
//
// The run behind the task is the open run of runs/state.js. The changes are requested again when the
// task's status or round changes.

import * as api from '../shell/api.js';
import { batch, computed, signal } from '../shell/lib.js';
import { runs, shown, step } from '../runs/state.js';
import { isNew, placeOf } from './words.js';

/** @typedef {import('../shell/api.js').TaskChanges} TaskChanges */
/** @typedef {import('../shell/api.js').TaskComment} TaskComment */
/** @typedef {import('../shell/api.js').ChangedRows} ChangedRows */

export const tasks = computed(() => runs.value.filter((r) => r.task));
export const needYou = computed(() => tasks.value.filter((r) => r.task?.status === 'needs_you' || r.task?.status === 'failed').length);

export const changes = signal(/** @type {TaskChanges | null} */ (null));
export const changesWrong = signal('');
export const loading = signal(false);
/** What is compared: all, since (the last review), or a commit. */
export const scope = signal('all');
export const comments = signal(/** @type {TaskComment[]} */ ([]));
/** The place that is commented on, or the comment that is changed. */
export const editing = signal(/** @type {{place: string, file: string, line: number, old: boolean, quote: string, id: number} | null} */ (null));
/** The task was changed while the person looked at it. */
export const renewed = signal(false);

/** Comments by their place in what is shown. */
export const byPlace = computed(() => {
  /** @type {Map<string, TaskComment[]>} */
  const all = new Map();
  for (const c of comments.value) {
    if (!c.at) continue;
    const key = placeOf(c.at.file, c.at.line ?? 0, c.at.old ?? false);
    all.set(key, [...(all.get(key) ?? []), c]);
  }
  return all;
});
/** Comments on the whole task, and those whose place is gone. */
export const placeless = computed(() => comments.value.filter((c) => !c.at));
/** What the next request sends. */
export const fresh = computed(() => comments.value.filter(isNew));

let open = '';
/** Reads of the changes so far, and the newest that was answered: an older one that ends later is of no use. */
let reads = 0, taken = 0;
/** Text that is not sent, by task. @type {Map<string, string>} */
export const drafts = new Map();

/** Files that the person has ticked off as viewed, by content; they come back when the content changes. */
export const viewed = signal(/** @type {Set<string>} */ (new Set()));
/** @param {TaskChanges} c @param {string} file */
export const viewKey = (c, file) => `${open} ${c.from} ${c.to} ${file}`;
/** @param {string} key @param {boolean} is */
export function setViewed(key, is) {
  const next = new Set(viewed.peek());
  if (is) next.add(key); else next.delete(key);
  viewed.value = next;
}

/** What was shown before the newest round. @param {TaskChanges} c */
export const lastReview = (c) => (c.rounds.length > 1 ? c.rounds[c.rounds.length - 2].commit : '');

/** The part of the run on which the changes depend. */
export const version = computed(() => {
  const run = shown.value;
  if (!run?.task) return '';
  return [run.run_id, run.task.status, step('work')?.value.iteration_count ?? 0, step('approve')?.value.attempts ?? 0, step('check')?.value.status].join(' ');
});

/** Requests the changes of a task. @param {string} id */
export async function readChanges(id) {
  if (open !== id) {
    open = id;
    batch(() => { changes.value = null; comments.value = []; editing.value = null; scope.value = 'all'; renewed.value = false; });
  }
  const mine = ++reads;
  loading.value = true;
  try {
    const at = scope.peek();
    let next = await api.taskChanges(id, {});
    if (at === 'since' && lastReview(next)) next = await api.taskChanges(id, { from: lastReview(next), to: next.to });
    else if (at !== 'all' && at !== 'since') next = await api.taskChanges(id, { to: at });
    // While a newer read waits, this answer is shown: when the task changes faster than it is read, each read would be waited for in vain.
    if (mine < taken || open !== id || scope.peek() !== at) return;
    taken = mine;
    const before = changes.peek();
    batch(() => {
      if (before?.shown && next.shown && before.shown !== next.shown) renewed.value = true;
      if (!before || before.from !== next.from || before.to !== next.to) rows.clear();
      changes.value = next;
      comments.value = next.comments ?? [];
      if (mine === reads) changesWrong.value = '';
    });
  } catch (err) {
    if (mine === reads) changesWrong.value = err instanceof Error ? err.message : String(err);
  } finally { if (mine === reads) loading.value = false; }
}

/** @param {string} what */
export function showScope(what) {
  scope.value = what;
  renewed.value = false;
  if (open) void readChanges(open);
}

// --- the rows of files -----------------------------------------------------------

/** @type {Map<string, Promise<ChangedRows>>} */
const rows = new Map();

/** The rows of a file, requested once. @param {TaskChanges} c @param {number} n */
export function rowsOf(c, n) {
  const key = `${c.from} ${c.to} ${n}`;
  let found = rows.get(key);
  if (!found) {
    found = api.taskFile(open, c.from, c.to, n);
    found.catch(() => rows.delete(key));
    rows.set(key, found);
  }
  return found;
}
