// What is known of the program behind an agent: its own status text, its rate limit, its
// conversation, and what enforces its permissions.

import { retryAgent, retryKey } from '../inbox/actions.js';
import { asksOf, limitedUntil } from '../inbox/words.js';
import { skew } from '../shell/api.js';
import { moment, shortClock, span } from '../shell/format.js';
import { html } from '../shell/lib.js';
import { now, seenUntil } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { go } from '../shell/router.js';
import { Act, Fault } from '../shell/orderbutton.js';
import { Icon } from '../shell/icons.js';

/** @param {{agent: import('../shell/api.js').Agent}} props */
export function Conversation({ agent: a }) {
  const c = a.conversation;
  const asks = a.asks ?? 0, denied = a.denied ?? 0;
  const until = limitedUntil(a, now.value + skew.ms);
  const at = a.says ? Date.parse(a.says.at) : NaN;
  if (!c && !asks && !denied && !a.says?.text && !Number.isFinite(until)) return null;
  return html`<div class="conv-facts">
    ${a.says?.text && html`<p class="says"><q>${plain(a.says.text, 300)}</q>${Number.isFinite(at) && html` <span class="soft num">${span(seenUntil.value + skew.ms - at)} ago</span>`}</p>`}
    ${asks > 0 && html`<p class="conv-ask"><${Icon} name="look" /><a class="link" href="#/inbox" onClick=${(/** @type {MouseEvent} */ e) => { if (!e.ctrlKey && !e.metaKey && !e.shiftKey) { e.preventDefault(); go('inbox'); } }}>${plain(asksOf(a), 200)}</a>${asks > 1 && html` <span class="soft">and ${asks - 1} more</span>`}</p>`}
    ${Number.isFinite(until) && html`<p class="conv-limit"><${Icon} name="clock" /><span>rate limited until <time class="num" datetime=${plain(a.limited_until, 40)}>${shortClock(until)}</time>${a.limited_why ? html`: <span class="soft">${plain(a.limited_why, 200)}</span>` : ''}</span></p>
      <div class="conv-retry"><${Act} at=${retryKey(a.name)} look="quiet" icon="play" label="Try again now" hint="Without waiting for the rate limit to end" act=${() => retryAgent(a.name)} /><${Fault} at=${retryKey(a.name)} /></div>`}
    ${denied > 0 && html`<p class="soft">${denied === 1 ? 'one thing was' : `${denied} things were`} denied in this session</p>`}
    ${c && html`<p class="soft conv-program">${[c.program, c.model && `model ${c.model}`, c.mode && `mode ${c.mode}`].filter(Boolean).map((w) => plain(w, 120)).join(', ')}
      ${c.id && html`<span>, conversation <code>${plain(c.id, 80)}</code>${c.resumed ? ', resumed' : ''}</span>`}${c.at && html`<span>, since <time class="num">${moment(Date.parse(c.at), now.value)}</time></span>`}</p>
      ${c.enforced && html`<p class="conv-enforced"><span class="soft">Enforced by: </span>${plain(c.enforced, 300)}</p>`}`}
  </div>`;
}
