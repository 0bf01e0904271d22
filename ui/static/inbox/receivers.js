// Who is notified: this browser, and the targets that fairlead.yaml names.

import { askForNotices, browserNotices, permission } from './browsernotices.js';
import { noticeTargets } from './state.js';
import { moment } from '../shell/format.js';
import { html } from '../shell/lib.js';
import { now } from '../shell/connection.js';
import { plain } from '../shell/text.js';

/** @param {{t: import('../shell/api.js').NoticeTarget}} props */
function Row({ t }) {
  const since = Date.parse(t.failing_since ?? '');
  return html`<li class="stood"><div class="stood-what">
    <p><b class=${t.state === 'failing' ? 'is-denied' : 'is-allowed'}>${t.state === 'failing' ? 'not reached' : 'reached'}</b> <bdi>${plain(t.name, 64)}</bdi> <span class="soft">${plain(t.kind, 80)}</span></p>
    ${t.state === 'failing' && html`<p>${Number.isFinite(since) && html`Since <time class="num">${moment(since, now.value)}</time>: `}${plain(t.cause, 200)}; ${plain(t.way_out, 300)}.</p>`}
    <p class="soft">${plain((t.events ?? []).join(', '), 200)}${t.quiet && html`; quiet ${plain(t.quiet, 60)}`}${t.waiting > 0 && html`; ${t.waiting} to be sent`}${t.left_out_last_hour > 0 && html`; ${t.left_out_last_hour} only counted in the last hour`}</p></div></li>`;
}

function Browser() {
  switch (permission.value) {
    case 'none': return html`<p class="soft">This browser has no notifications for this page.</p>`;
    case 'denied': return html`<p class="soft">This browser blocks notifications of this page; its settings for the page allow them.</p>`;
    case 'granted': return html`<label class="check"><input type="checkbox" checked=${browserNotices.value === 'on'} onChange=${(/** @type {any} */ e) => { browserNotices.value = e.target.checked ? 'on' : 'off'; }} />
      <span>Show notifications of this browser while the page is hidden</span></label>`;
    default: return html`<button type="button" class="plain-button" onClick=${() => void askForNotices()}>Notify me in this browser</button>`;
  }
}

export function Receivers() {
  const list = noticeTargets.value;
  return html`<section class="receivers" aria-labelledby="notices-title"><h2 id="notices-title" tabIndex=${-1}>Notices</h2>
    <${Browser} />
    ${list.length > 0 && html`<ul>${list.map((t) => html`<${Row} key=${t.name} t=${t} />`)}</ul>`}
    ${list.length === 0 && html`<p class="soft">To be notified on a phone or in a chat, add a target under <code>notify.targets</code> in <code>fairlead.yaml</code>.</p>`}
  </section>`;
}
