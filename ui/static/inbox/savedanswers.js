// Saved answers: what is allowed or denied without asking.

import { revokeKey, revokeAnswer } from './actions.js';
import { callOf } from './words.js';
import { savedAnswers } from './state.js';
import { moment } from '../shell/format.js';
import { html } from '../shell/lib.js';
import { now } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { Act, Fault } from '../shell/orderbutton.js';

/** Rows shown; the command line lists all of them. */
const SHOWN_MAX = 200;

/** @param {{s: import('../shell/api.js').SavedAnswer}} props */
function Row({ s }) {
  const { chief, written, rest } = callOf(s.call);
  return html`<li class="stood"><div class="stood-what">
      <p><b class=${s.allow ? 'is-allowed' : 'is-denied'}>${s.allow ? 'allowed' : 'denied'}</b> <bdi>${plain(s.agent, 80)}</bdi> <span>${plain(s.tool, 80)}</span> <code>${plain(chief || written || rest, 200)}</code></p>
      <p class="soft"><code>${plain(s.id, 40)}</code> ${s.session_id ? html`for session <code>${plain(s.session_id, 60)}</code>` : 'always'}, by ${plain(s.by, 60)}, <time class="num" datetime=${plain(s.at, 40)}>${moment(Date.parse(s.at), now.value)}</time></p></div>
    <${Act} at=${revokeKey(s.id)} look="quiet" icon="cross" label="Revoke" act=${() => revokeAnswer(s.id)} /><${Fault} at=${revokeKey(s.id)} /></li>`;
}

export function SavedAnswers() {
  const list = savedAnswers.value;
  if (list.length === 0) return null;
  return html`<section class="standings" aria-labelledby="standing-title"><h2 id="standing-title" tabIndex=${-1}>Saved answers</h2>
    <p class="soft">They answer calls like these, without anybody being asked again.</p>
    <ul>${list.slice(0, SHOWN_MAX).map((s) => html`<${Row} key=${s.id} s=${s} />`)}</ul>
    ${list.length > SHOWN_MAX && html`<p class="quiet-note">and ${list.length - SHOWN_MAX} more: <code>fairlead question saved</code></p>`}</section>`;
}
