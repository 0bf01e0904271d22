// Sessions in which MAIN coordinates: the open ones first.

import { moment, plural } from '../shell/format.js';
import { html, useSignal } from '../shell/lib.js';
import { sessions, sessionsKnown, sessionsWrong } from './state.js';
import { display, sessionLook } from './words.js';
import { live, now } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { dialog, sessionName, showSessionFolder } from '../shell/router.js';
import { Icon } from '../shell/icons.js';
import { Mark } from '../runs/list.js';

/** Rows drawn at first, and with each wish for more. */
const PAGE = 100;

/** @param {{s: import('../shell/api.js').DispatchRow}} props */
function Row({ s }) {
  const isShown = sessionName.value === s.name;
  return html`<li class="run-row ${isShown ? 'run-row-shown' : ''}">
    <span class="run-row-head"><button type="button" class="run-name" aria-current=${isShown ? 'true' : undefined} onClick=${() => showSessionFolder(s.name)}>
      <bdi>${plain(s.name, 80)}</bdi></button><${Mark} look=${sessionLook(s)} /></span>
    ${s.fault ? html`<span class="run-row-line">${plain(s.fault, 200)}</span>` : html`<span class="run-row-line"><b class="session-state">${display(s.state)}</b><span>${plain(s.mode, 20)}</span><span>${plural(s.conversations, 'conversation')}</span>
      ${s.denied > 0 && html`<span>${s.denied} denied</span>`}${s.waiting > 0 && html`<span class="waits-count">${s.waiting} waiting</span>`}</span>`}
    ${s.changed_at && html`<time class="num run-row-time" datetime=${s.changed_at}>${moment(Date.parse(s.changed_at), now.value)}</time>`}
  </li>`;
}

export function SessionList() {
  const more = useSignal(PAGE);
  const list = sessions.value;
  return html`<nav class="run-list session-list" aria-label="Sessions">
    <div class="run-tools"><h2 id="sessions-title" tabIndex=${-1}>Sessions</h2>
      <button type="button" class="order order-start" aria-disabled=${live.value ? undefined : 'true'} onClick=${() => { if (live.value) dialog.value = 'session'; }}><${Icon} name="play" /><span>Start a session</span></button></div>
    <div class="run-scroll">
      ${!sessionsKnown.value ? html`<div class="empty"><p>${sessionsWrong.value ? plain(sessionsWrong.value, 400) : 'Asking Fairlead for the sessions\u2026'}</p></div>`
        : list.length === 0 ? html`<div class="empty"><h2>No sessions yet</h2><p>In a session MAIN coordinates and may not touch code: whoever\u2019s description fits an input does the work, and what is forbidden is denied by the machine.</p>
          <p>Start one here, in Claude Code with <code>/agent-state-machine</code>, or in a terminal: <code>fairlead dispatch start</code></p></div>`
        : html`<ul class="run-rows" aria-label="Sessions, the open ones first">${list.slice(0, more.value).map((s) => html`<${Row} key=${s.name} s=${s} />`)}</ul>`}
      ${list.length > more.value && html`<button type="button" class="plain-button run-more" onClick=${() => { more.value += PAGE; }}>Show older sessions</button>`}
    </div>
  </nav>`;
}
