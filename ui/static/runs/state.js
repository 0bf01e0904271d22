// What this page knows of runs: the list, the inbox, and the run that is looked at.
//
// The server derives, the page shows: whenever a change is about a run, the
// answers that may have changed are asked for again, at most one question of a
// kind under way, and a slow server is asked less often. Each step is a signal
// of its own, so that a change draws one step again and no other.

import * as api from '../shell/api.js';
import { batch, computed, signal } from '../shell/lib.js';
import { Question } from '../shell/refetch.js';
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
/** The steps of the run that is shown, in the plan's order. */
export const stepIDs = signal(/** @type {string[]} */ ([]));
/** Counts up when what the drawing depends on has changed: a step, a need, a loop. */
export const topology = signal(0);

/** @type {Map<string, StepCell>} */
let steps = new Map();
let shape = '';

/** @param {string} id @returns {StepCell | undefined} */
export const step = (id) => steps.get(id);
export const waiting = computed(() => inbox.value.length);
/** Is anything of the run that is shown still to come? @param {RunView} r */
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

export function forgetRuns() {
  batch(() => {
    runs.value = [];
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

// --- asked for again ------------------------------------------------------------

const list = new Question(async () => {
  const answer = await api.runs();
  batch(() => { runs.value = answer.runs ?? []; runsKnown.value = true; });
});

const box = new Question(async () => {
  inbox.value = (await api.inbox()).items ?? [];
});

/** Only what waits for people. @param {boolean} [soon] */
export const refreshInbox = (soon = false) => box.want(soon);

const one = new Question(async () => {
  const id = runID.peek();
  if (!id) return;
  try {
    const view = await api.run(id);
    if (runID.peek() === id) show(view);
  } catch (err) {
    if (runID.peek() === id) shownWrong.value = err instanceof Error ? err.message : String(err);
  }
});

/** Ask again, because something may have changed; soon: somebody waits for it. @param {boolean} [soon] */
export function refreshRuns(soon = false) {
  list.want(soon);
  box.want(soon);
  one.want(soon);
}

/** Another run is looked at. */
export function lookAt() {
  if (shown.peek()?.run_id !== runID.peek()) batch(clearShown);
  if (runID.peek()) one.want(true);
}

/** Changes of the journal, as they come. @param {import('../shell/api.js').Change[]} changes */
export function noteChanges(changes) {
  const mine = changes.filter((ch) => ch.entity.startsWith('run/'));
  if (mine.length === 0) return;
  addTrail(mine);
  list.want();
  box.want();
  const at = runID.peek();
  if (at && mine.some((ch) => ch.entity === `run/${at}` || ch.entity.startsWith(`run/${at}/`))) one.want();
}
