// Runs: the list, the inbox, and the open run.
//
// The server derives the views, and the page requests them again after a change about a run: one
// request of a kind at a time, and fewer if the server is slow. Each step is a signal, so that a
// change redraws one step and no other.

import * as api from '../shell/api.js';
import { batch, signal } from '../shell/lib.js';
import { Refetch } from '../shell/refetch.js';
import { addTrail, forgetTrail, wantTrail } from './trail.js';
import { runID } from '../shell/router.js';

/** @typedef {import('../shell/api.js').RunView} RunView */
/** @typedef {import('../shell/api.js').StepView} StepView */
/** @typedef {import('../shell/api.js').InboxItem} InboxItem */
/** @typedef {import('../shell/lib.js').Signal<StepView>} StepCell */

export const runs = signal(/** @type {RunView[]} */ ([]));
export const inbox = signal(/** @type {InboxItem[]} */ ([]));
export const runsKnown = signal(false);
export const shown = signal(/** @type {RunView | null} */ (null));
export const shownWrong = signal('');
/** The steps of the open run, in the order of the workflow. */
export const stepIDs = signal(/** @type {string[]} */ ([]));
/** Increases when the graph's layout changed: a step, a need or a loop-back. */
export const topology = signal(0);

/** @type {Map<string, StepCell>} */
let steps = new Map();
let shape = '';

/** @param {string} id @returns {StepCell | undefined} */
export const step = (id) => steps.get(id);
/** Has the run ended? @param {RunView} r */
export const isOver = (r) => r.stage === 'stopped' || ['completed', 'failed', 'cancelled'].includes(r.status);

/** @param {RunView} view */
function show(view) {
  batch(() => {
    const list = view.steps ?? [];
    const next = list.map((s) => `${s.id}<${(s.needs ?? []).join(',')}>${s.loop_back_to ?? ''}`).join('\n');
    const old = steps;
    if (shown.peek()?.run_id !== view.run_id) steps = new Map();
    for (const s of list) {
      const cell = steps.get(s.id);
      if (!cell) steps.set(s.id, signal(s));
      else if (JSON.stringify(cell.peek()) !== JSON.stringify(s)) cell.value = s;
    }
    shown.value = { ...view, steps: undefined };
    shownWrong.value = '';
    if (next !== shape || old !== steps) {
      shape = next;
      stepIDs.value = list.map((s) => s.id);
      topology.value++;
    }
  });
  wantTrail(view.run_id, view.steps ?? []);
}

let life = 0; // an answer to a request of before forgetRuns is not taken

export function forgetRuns() {
  life++;
  batch(() => {
    runs.value = [];
    runsKnown.value = false;
    inbox.value = [];
    clearShown();
  });
  forgetTrail();
}

function clearShown() {
  steps = new Map();
  shape = '';
  shown.value = null;
  stepIDs.value = [];
  shownWrong.value = '';
}

// --- requests --------------------------------------------------------------------

const list = new Refetch(async () => {
  const at = life;
  const answer = await api.runs();
  if (at !== life) return;
  batch(() => { runs.value = answer.runs ?? []; runsKnown.value = true; });
});

const box = new Refetch(async () => {
  const at = life;
  const answer = await api.inbox();
  if (at !== life) return;
  inbox.value = answer.items ?? [];
});

/** Requests only the inbox. @param {boolean} [soon] */
export const refreshInbox = (soon = false) => box.want(soon);

const one = new Refetch(async () => {
  const id = runID.peek();
  if (!id) return;
  try {
    const view = await api.run(id);
    if (runID.peek() === id) show(view);
  } catch (err) {
    if (runID.peek() === id) shownWrong.value = err instanceof Error ? err.message : String(err);
  }
});

/** Requests the views again; soon: a person waits for them. @param {boolean} [soon] */
export function refreshRuns(soon = false) {
  list.want(soon);
  box.want(soon);
  one.want(soon);
}

/** Another run was opened. */
export function lookAt() {
  if (shown.peek()?.run_id !== runID.peek()) batch(clearShown);
  if (runID.peek()) one.want(true);
}

/** Applies changes of the journal. @param {import('../shell/api.js').Change[]} changes */
export function applyRunChanges(changes) {
  const mine = changes.filter((ch) => ch.entity.startsWith('run/'));
  if (changes.some((ch) => ch.data?.host?.lease)) { list.want(); one.want(); } // a session was placed on a host
  if (mine.length === 0) return;
  addTrail(mine);
  list.want();
  box.want();
  const at = runID.peek();
  if (at && mine.some((ch) => ch.entity === `run/${at}` || ch.entity.startsWith(`run/${at}/`))) one.want();
}
