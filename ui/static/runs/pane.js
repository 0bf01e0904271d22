// The open run: its status, what it waits for, and its steps.

import { money, moment } from '../shell/format.js';
import { html, useSignal } from '../shell/lib.js';
import { asking, keyOf, pauseRun } from './actions.js';
import { isOver, shown, shownWrong, step, stepIDs } from './state.js';
import { runLook, progress } from './words.js';
import { live, now } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { dialog, go, runID, showRun, showTask, stepID } from '../shell/router.js';
import { Icon } from '../shell/icons.js';
import { RunGraph } from './graphdrawing.js';
import { Bar, Mark } from './list.js';
import { RunTimeline } from './timeline.js';
import { StepDetail } from './step.js';

/** Reasons for waiting that are shown. */
const WAITS_MAX = 8;
/** Steps with a button of their own that leads to what they ask. */
const ASKS_MAX = 3;

/** @param {{run: import('../shell/api.js').RunView}} props */
function Orders({ run }) {
  const off = !live.value || asking.value !== '';
  const button = (/** @type {string} */ look, /** @type {string} */ icon, /** @type {string} */ label, /** @type {() => void} */ act, verb = '') => html`<button type="button" key=${label} class="order order-${look}"
    aria-disabled=${off ? 'true' : undefined} aria-busy=${verb && asking.value === keyOf(verb, run.run_id) ? 'true' : undefined} onClick=${() => { if (!off) act(); }}><${Icon} name=${icon} /><span>${label}</span></button>`;
  if (run.status === 'completed') return null; // a step of it can be resumed
  if (isOver(run)) return html`<div class="orders">${button('start', 'play', 'Resume', () => { dialog.value = 'resume'; }, 'resume')}</div>`;
  const asks = stepIDs.value.filter((id) => step(id)?.value.status === 'WAITING_ON_HUMAN' && id !== stepID.value).slice(0, ASKS_MAX);
  return html`<div class="orders">
    ${run.task && asks.length > 0 ? button('primary', 'forward', 'Look at the Changes', () => showTask(run.run_id)) : asks.map((id) => button('primary', 'comment', `Answer ${plain(id, 40)}`, () => showRun(run.run_id, id)))}
    ${run.stage === 'paused' ? button('start', 'play', 'Release', () => void pauseRun(run.run_id, 'release'), 'release') : button('plain', 'hold', 'Pause', () => void pauseRun(run.run_id, 'pause'), 'pause')}
    ${button('quiet', 'cross', 'Cancel run', () => { dialog.value = 'cancel'; }, 'cancel')}</div>`;
}

/** @param {{run: import('../shell/api.js').RunView}} props */
function Head({ run }) {
  const waits = run.waits ?? [];
  return html`<header class="run-head">
    <button type="button" class="back" onClick=${() => go('runs')}><${Icon} name="back" />Runs</button>
    <div class="agent-title"><h2 id="run-title" tabIndex=${-1}><bdi>${plain(run.task?.title || run.workflow_name, 200) || 'unnamed'}</bdi></h2><${Mark} look=${runLook(run)} /></div>
    ${run.task && html`<p class="about"><span>task: ${plain(run.task.status, 20).replace('_', ' ')}</span><span class="soft">for ${plain(run.task.agent, 64)}, lands on ${plain(run.task.base, 100)}</span><button type="button" class="link" onClick=${() => showTask(run.run_id)}>Open the task</button></p>`}
    <p class="about"><code>${plain(run.run_id, 48)}</code><span>${progress(run.counts)}</span>
      <span class="soft">begun <time class="num">${moment(Date.parse(run.created_at), now.value)}</time>, changed <time class="num">${moment(Date.parse(run.updated_at), now.value)}</time></span>
      ${run.cost_usd ? html`<span class="num soft" title="as its agents reported">${money(run.cost_usd)}</span>` : ''}</p>
    <${Bar} counts=${run.counts} />
    <${Orders} run=${run} />
    ${run.why && html`<p class="soft">${run.by ? `${plain(run.by, 60)}: ` : ''}${plain(run.why, 300)}</p>`}
    ${waits.length > 0 && html`<ul class="waits">${waits.slice(0, WAITS_MAX).map((w, i) => html`<li key=${i}>${plain(w, 300)}</li>`)}${waits.length > WAITS_MAX && html`<li>and ${waits.length - WAITS_MAX} more</li>`}</ul>`}
  </header>`;
}

const FORMS = /** @type {const} */ ([['graph', 'Graph'], ['time', 'Timeline']]);

export function RunPane() {
  const form = useSignal(/** @type {'graph' | 'time'} */ ('graph'));
  const run = shown.value;
  const id = runID.value;
  if (!id) return html`<section class="run-pane run-none" aria-label="Chosen run"><div class="empty"><p>Choose a run to see its steps, or start one.</p></div></section>`;
  if (!run || run.run_id !== id) {
    return html`<section class="run-pane run-none" aria-label="Chosen run"><button type="button" class="back" onClick=${() => go('runs')}><${Icon} name="back" />Runs</button>
      <div class="empty">${shownWrong.value ? html`<h2>No such run</h2><p>${plain(shownWrong.value, 400)}</p>` : html`<p>Asking Fairlead for this run\u2026</p>`}</div></section>`;
  }
  return html`<section class="run-pane" aria-labelledby="run-title" key=${id}>
    <${Head} run=${run} />
    <div class="run-forms"><span class="seg" role="group" aria-label="Form">${FORMS.map(([key, label]) => html`<button type="button" key=${key} aria-pressed=${form.value === key ? 'true' : 'false'} onClick=${() => { form.value = key; }}>${label}</button>`)}</span>
      ${shownWrong.value && html`<span class="soft">${plain(shownWrong.value, 200)}</span>`}</div>
    ${form.value === 'graph' ? html`<${RunGraph} run=${id} />` : html`<${RunTimeline} run=${id} />`}
    ${stepID.value && html`<${StepDetail} key=${stepID.value} run=${id} />`}
  </section>`;
}
