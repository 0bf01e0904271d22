// All runs, the newest first.

import { moment } from '../shell/format.js';
import { html, useSignal } from '../shell/lib.js';
import { runs, runsKnown } from './state.js';
import { runLook, progress, total } from './words.js';
import { live, now } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { dialog, runID, showRun } from '../shell/router.js';
import { Icon } from '../shell/icons.js';

/** Rows shown at first, and added by each "more". */
const PAGE = 100;

/** @param {{look: import('./words.js').Look}} props */
export const Mark = ({ look }) => html`<span class="state state-${look.look}"><i aria-hidden="true">${look.mark}</i>${plain(look.label, 40)}</span>`;

/** The progress of a run, as a bar. @param {{counts: import('../shell/api.js').Counts}} props */
export function Bar({ counts: c }) {
  const all = total(c) || 1;
  const parts = /** @type {[string, number][]} */ ([['ok', c.completed], ['cut', c.skipped], ['failed', c.failed], ['wait', c.waiting_on_human], ['live', c.running]]);
  return html`<span class="progress" aria-hidden="true">${parts.map(([look, n]) => n > 0 && html`<i key=${look} class="part-${look}" style=${{ width: `${((n / all) * 100).toFixed(2)}%` }}></i>`)}</span>`;
}

/** @param {{run: import('../shell/api.js').RunView}} props */
function Row({ run }) {
  const look = runLook(run);
  const isShown = runID.value === run.run_id;
  return html`<li class="run-row ${isShown ? 'run-row-shown' : ''}">
    <span class="run-row-head"><button type="button" class="run-name" aria-current=${isShown ? 'true' : undefined} onClick=${() => showRun(run.run_id)}>
      <bdi>${plain(run.task?.title || run.workflow_name, 80) || 'unnamed'}</bdi></button><${Mark} look=${look} /></span>
    <span class="run-row-line"><code>${plain(run.run_id, 48)}</code><span>${progress(run.counts)}</span></span>
    <${Bar} counts=${run.counts} />
    <time class="num run-row-time">${moment(Date.parse(run.updated_at), now.value)}</time>
  </li>`;
}

export function RunList() {
  const more = useSignal(PAGE);
  const list = runs.value;
  return html`<nav class="run-list" aria-label="Runs">
    <div class="run-tools"><h2 id="runs-title" tabIndex=${-1}>Runs</h2>
      <button type="button" class="order ${list.length ? 'order-plain' : 'order-primary'}" data-start aria-disabled=${live.value ? undefined : 'true'} onClick=${() => { if (live.value) dialog.value = 'start'; }}><${Icon} name="play" /><span>Start a run</span></button></div>
    <div class="run-scroll">
      ${!runsKnown.value ? html`<div class="empty"><p>Asking Fairlead for the runs\u2026</p></div>`
        : list.length === 0 ? html`<div class="empty"><h2>No runs yet</h2><p>A run takes a workflow through its steps: agents work, gates send them back, people approve.</p>
          <p>Start one here, or in a terminal: <code>fairlead run --workflow FILE</code></p>
          <p>For a single piece of work, give a <a class="link" href="#/tasks">task</a>: an agent works in a folder of its own, you look at the changes, and they land on a branch.</p></div>`
        : html`<ul class="run-rows" aria-label="Runs, the newest first">${list.slice(0, more.value).map((r) => html`<${Row} key=${r.run_id} run=${r} />`)}</ul>`}
      ${list.length > more.value && html`<button type="button" class="plain-button run-more" onClick=${() => { more.value += PAGE; }}>Show older runs</button>`}
    </div>
  </nav>`;
}
