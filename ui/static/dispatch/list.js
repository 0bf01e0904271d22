// Dispatch sessions, the open ones first.

import { moment, plural } from '../shell/format.js';
import { html, useSignal } from '../shell/lib.js';
import { sessions, dispatchesKnown, listWrong } from './state.js';
import { display, dispatchLook } from './words.js';
import { live, now } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { dialog, sessionName, showDispatch } from '../shell/router.js';
import { Icon } from '../shell/icons.js';
import { Mark } from '../runs/list.js';

/** Rows shown at first, and added by each "more". */
const PAGE = 100;

/** @param {{s: import('../shell/api.js').DispatchRow}} props */
function Row({ s }) {
  const isShown = sessionName.value === s.name;
  return html`<li class="run-row ${isShown ? 'run-row-shown' : ''}">
    <span class="run-row-head"><button type="button" class="run-name" aria-current=${isShown ? 'true' : undefined} onClick=${() => showDispatch(s.name)}>
      <bdi>${plain(s.name, 80)}</bdi></button><${Mark} look=${dispatchLook(s)} /></span>
    ${s.fault ? html`<span class="run-row-line">${plain(s.fault, 200)}</span>` : html`<span class="run-row-line"><b class="session-state">${display(s.state)}</b><span>${plain(s.mode, 20)}</span><span>${plural(s.conversations, 'conversation')}</span>
      ${s.denied > 0 && html`<span>${s.denied} denied</span>`}${s.waiting > 0 && html`<span class="waits-count">${s.waiting} waiting</span>`}</span>`}
    ${s.changed_at && html`<time class="num run-row-time" datetime=${s.changed_at}>${moment(Date.parse(s.changed_at), now.value)}</time>`}
  </li>`;
}

export function DispatchList() {
  const more = useSignal(PAGE);
  const list = sessions.value;
  return html`<nav class="run-list session-list" aria-label="Dispatches">
    <div class="run-tools"><h2 id="sessions-title" tabIndex=${-1}>Dispatch</h2>
      <button type="button" class="order ${list.length ? 'order-plain' : 'order-primary'}" aria-disabled=${live.value ? undefined : 'true'} onClick=${() => { if (live.value) dialog.value = 'session'; }}><${Icon} name="play" /><span>Start a dispatch</span></button></div>
    <div class="run-scroll">
      ${!dispatchesKnown.value ? html`<div class="empty"><p>${listWrong.value ? plain(listWrong.value, 400) : 'Loading\u2026'}</p></div>`
        : list.length === 0 ? html`<div class="empty"><h2>No dispatch yet</h2><p>In a dispatch, MAIN coordinates and may not change code. The agent whose description fits an input does the work, and Fairlead denies what is forbidden.</p>
          <p>Start one here, in Claude Code with <code>/agent-state-machine</code>, or in a terminal: <code>fairlead dispatch start</code></p></div>`
        : html`<ul class="run-rows" aria-label="Dispatches, the open ones first">${list.slice(0, more.value).map((s) => html`<${Row} key=${s.name} s=${s} />`)}</ul>`}
      ${list.length > more.value && html`<button type="button" class="plain-button run-more" onClick=${() => { more.value += PAGE; }}>Show older dispatches</button>`}
    </div>
  </nav>`;
}
