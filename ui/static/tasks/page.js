// One task in full.

import { OnHost, WaitsForHost } from '../hosts/onhost.js';
import { money, span } from '../shell/format.js';
import { html, useEffect, useLayoutEffect, useRef, useSignal } from '../shell/lib.js';
import { shown, shownWrong } from '../runs/state.js';
import { Mark } from '../runs/list.js';
import { live, seenUntil } from '../shell/connection.js';
import { skew } from '../shell/api.js';
import { plain } from '../shell/text.js';
import { dialog, go, runID, showRun, spot } from '../shell/router.js';
import { Sheet } from '../shell/dialogs.js';
import { Icon } from '../shell/icons.js';
import { dropTask, keyOf } from './actions.js';
import { Fault } from '../shell/orderbutton.js';
import { TaskAnswer } from './answer.js';
import { Changes } from './changes.js';
import { Conversation } from './conversation.js';
import { changes, readChanges, version } from './state.js';
import { taskLook } from './words.js';

/** @param {{run: import('../shell/api.js').RunView}} props */
function Head({ run }) {
  const t = /** @type {import('../shell/api.js').TaskView} */ (run.task);
  const land = changes.value?.land ?? '';
  return html`<header class="task-head"><button type="button" class="icon-button" aria-label="All tasks" title="All tasks" onClick=${() => go('tasks')}><${Icon} name="back" /></button>
    <div class="task-title"><h2 id="task-title" tabIndex=${-1}><bdi>${plain(t.title, 200) || 'untitled'}</bdi></h2>
      <p class="task-facts"><${Mark} look=${taskLook(t.status)} /><code>${plain(run.run_id, 48)}</code><span>${plain(t.agent, 64)}</span><${OnHost} name=${t.host} /><span>${land ? `${plain(land, 20)} onto ` : 'onto '}<code>${plain(t.base, 100)}</code></span>
        ${(changes.value?.round ?? 1) > 1 && html`<span class="num">round ${changes.value?.round}</span>`}<span class="num">${span(seenUntil.value + skew.ms - Date.parse(run.created_at))} old</span>${run.cost_usd ? html`<span class="num" title="as its agents reported">${money(run.cost_usd)}</span>` : ''}
        <button type="button" class="link" onClick=${() => showRun(run.run_id)}>Steps and logs</button></p>
      <${WaitsForHost} is=${(/** @type {import('../shell/api.js').WaitingSession} */ w) => w.run === run.run_id} /></div>
  </header>`;
}

const SIDES = /** @type {const} */ ([['changes', 'Changes'], ['conversation', 'Conversation']]);

export function TaskPage() {
  const id = runID.value;
  const run = shown.value;
  const known = run?.run_id === id ? run : null;
  const side = useSignal(/** @type {'changes' | 'conversation'} */ ('changes'));
  // On a phone one part is shown at a time, each where it was left.
  const page = useRef(/** @type {Element | null} */ (null)), places = useRef(/** @type {Record<string, number>} */ ({}));
  const turn = (/** @type {'changes' | 'conversation'} */ to) => {
    if (page.current) places.current[side.value] = page.current.scrollTop;
    side.value = to;
  };
  useLayoutEffect(() => { if (page.current) page.current.scrollTop = places.current[side.value] ?? 0; }, [side.value]);
  useEffect(() => { if (known?.task) void readChanges(id); }, [id, version.value]);
  useEffect(() => { if (spot.value.startsWith('request-')) side.value = 'conversation'; }, [spot.value]);
  useEffect(() => { if (spot.value) document.getElementById(`spot-${spot.value}`)?.scrollIntoView({ block: 'center' }); }, [spot.value, changes.value, side.value]);
  if (!known?.task) {
    return html`<section class="task-page" aria-label="Task"><div class="empty">${shownWrong.value || known ? html`<h2>No such task</h2><p>${plain(shownWrong.value || 'This run is not a task.', 400)}</p>` : html`<p>Asking Fairlead for this task\u2026</p>`}
      <button type="button" class="plain-button" onClick=${() => go('tasks')}>All tasks</button></div></section>`;
  }
  return html`<section class="task-page" aria-labelledby="task-title" key=${id} ref=${page} data-side=${side.value}>
    <${Head} run=${known} />
    <div class="task-sides"><span class="seg" role="group" aria-label="Part">${SIDES.map(([key, label]) => html`<button type="button" key=${key} aria-pressed=${side.value === key ? 'true' : 'false'} onClick=${() => { if (side.value !== key) turn(key); }}>${label}</button>`)}</span></div>
    <div class="task-body"><${Conversation} run=${known} />
      <div class="task-right"><div class="task-changes" tabIndex=${0} role="region" aria-label="Changes"><${Changes} task=${id} /></div><${TaskAnswer} key=${id} run=${known} /></div></div>
  </section>`;
}

/** The dialog that ends a task. */
export function DropDialog() {
  if (dialog.value !== 'drop-task') return null;
  const id = runID.peek();
  const send = async () => { if (live.peek() && await dropTask(id)) dialog.value = ''; };
  return html`<${Sheet} title="Drop ${plain(id, 48)}?"><ul class="plain-list"><li>Its processes are ended, and its folder is removed.</li><li>What was written stays under <code>refs/fairlead/tasks/${plain(id, 48)}</code>.</li></ul>
    <${Fault} at=${keyOf('drop', id)} />
    <div class="dialog-foot"><button type="button" class="plain-button" onClick=${() => { dialog.value = ''; }}>Keep it</button><button type="button" class="order order-stop" onClick=${send}>Drop the Task</button></div><//>`;
}
