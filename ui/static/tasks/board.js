// All tasks, by what happens to them now.

import { OnHost, WaitsForHost } from '../hosts/onhost.js';
import { money, plural, span } from '../shell/format.js';
import { html, useSignal } from '../shell/lib.js';
import { runsKnown } from '../runs/state.js';
import { Mark } from '../runs/list.js';
import { live, seenUntil } from '../shell/connection.js';
import { skew } from '../shell/api.js';
import { plain } from '../shell/text.js';
import { dialog, showTask } from '../shell/router.js';
import { Icon } from '../shell/icons.js';
import { needYou, tasks } from './state.js';
import { COLUMNS, nothingNew, overlapping, sorted, taskLook } from './words.js';

/** Cards shown in a column at first, and added by each "more". */
const PAGE = 30;

/** @param {{run: import('../shell/api.js').RunView, all: string[]}} props all: the statuses of the column; the first one goes without saying */
function Card({ run, all }) {
  const t = /** @type {import('../shell/api.js').TaskView} */ (run.task);
  const since = Date.parse(run.updated_at);
  return html`<li class="task-card card-${plain(t.status, 20)}"><a class="card-link" href="#/tasks/${encodeURIComponent(run.run_id)}" onClick=${(/** @type {MouseEvent} */ e) => { if (!e.ctrlKey && !e.metaKey && !e.shiftKey) { e.preventDefault(); showTask(run.run_id); } }}><bdi>${plain(t.title, 160) || 'untitled'}</bdi></a>
    <p class="card-line"><code>${plain(run.run_id, 48)}</code><span>${plain(t.agent, 64)}</span><${OnHost} name=${t.host} /><span class="num">${span(seenUntil.value + skew.ms - since)}</span></p>
    ${t.status !== all[0] && html`<${Mark} look=${taskLook(t.status)} />`}
    ${nothingNew(t) && html`<p class="card-why">${nothingNew(t)}</p>`}
    ${(t.overlaps ?? []).map((o) => html`<p key=${o.id} class="card-why">${overlapping(o)}</p>`)}
    ${t.why && t.status !== 'done' && html`<p class="card-why">${plain(t.why, 160)}</p>`}
    <${WaitsForHost} is=${(/** @type {import('../shell/api.js').WaitingSession} */ w) => w.run === run.run_id} />
    ${t.files_changed > 0 || run.cost_usd ? html`<p class="card-line">${t.files_changed > 0 && html`<span class="num">${plural(t.files_changed, 'file')} changed</span>`}${run.cost_usd ? html`<span class="num">${money(run.cost_usd)}</span>` : ''}</p>` : ''}
  </li>`;
}

/** @param {{column: import('./words.js').Column, list: import('../shell/api.js').RunView[]}} props */
function Column({ column: c, list }) {
  const most = useSignal(PAGE);
  return html`<section class="column column-${c.key} ${list.length === 0 ? 'column-empty' : ''}" aria-labelledby="column-${c.key}">
    <h3 id="column-${c.key}">${c.title} <span class="num soft">${list.length}</span></h3>
    ${list.length === 0 ? html`<p class="column-none">${c.empty}</p>` : html`<ul class="cards" tabIndex=${list.length > 4 ? 0 : undefined} aria-label=${c.title}>${list.slice(0, most.value).map((r) => html`<${Card} key=${r.run_id} run=${r} all=${c.of} />`)}
      ${list.length > most.value && html`<li><button type="button" class="plain-button" onClick=${() => { most.value += PAGE; }}>${list.length - most.value} more</button></li>`}</ul>`}
  </section>`;
}

export function Board() {
  const all = tasks.value;
  const lists = sorted(all);
  return html`<section class="board" aria-labelledby="tasks-title">
    <header class="board-head"><h2 id="tasks-title" tabIndex=${-1}>Tasks</h2>
      <p class="soft">${needYou.value > 0 ? html`<b class="num">${needYou.value}</b> ${needYou.value === 1 ? 'needs' : 'need'} you` : all.length > 0 ? 'Nothing needs you' : ''}</p>
      <button type="button" class="order ${needYou.value > 0 ? 'order-plain' : 'order-primary'}" aria-disabled=${live.value ? undefined : 'true'} onClick=${() => { if (live.value) dialog.value = 'task'; }}><${Icon} name="plus" /><span>New task</span></button></header>
    ${!runsKnown.value ? html`<div class="empty"><p>Asking Fairlead for the tasks\u2026</p></div>`
      : all.length === 0 ? html`<div class="empty"><h2>No tasks yet</h2><p>Say what is to be done. An agent works on it in a folder of its own, the checks run, and you look at the changes here before they land.</p>
        <p>In a terminal: <code>fairlead task "Add retries to the uploader"</code></p></div>`
      : html`<div class="columns">${COLUMNS.map((c, i) => html`<${Column} key=${c.key} column=${c} list=${lists[i]} />`)}</div>`}
  </section>`;
}
