// "While you were away": asked for when a person comes back, and put away for every browser of this workspace.

import * as api from '../shell/api.js';
import { html, signal } from '../shell/lib.js';
import { Icon } from '../shell/icons.js';
import { asOf, live } from '../shell/connection.js';
import { count, money, plural, shortMoment, span, tokens } from '../shell/format.js';
import { plain } from '../shell/text.js';
import { spoken } from '../shell/router.js';
import { markSeen } from './state.js';

/** @typedef {import('../shell/api.js').Digest} Digest */

/** Without a key or a click for this long, a person was away. */
const AWAY_MS = 10 * 60_000;
/** Least time between two marks of a visit. */
const MARK_MS = 60_000;

export const away = signal(/** @type {Digest | null} */ (null));

let marked = 0; // when a visit was marked last
let asking = false;

/** @param {boolean} [putAway] */
async function mark(putAway = false) {
  marked = Date.now();
  try { await api.markSeen(putAway); } catch { /* the next one counts; an agent's page may not mark */ }
}

/** Asks what happened since the last visit, and shows it if a person was away. */
export async function comeBack() {
  if (asking || away.peek() || asOf.peek() > 0) return;
  asking = true;
  try {
    const d = await api.digest();
    if (d.put_away) markSeen(Date.parse(d.put_away));
    if ((d.lines ?? []).length > 0 && Date.parse(d.until) - Date.parse(d.since) >= AWAY_MS) away.value = d;
    else await mark();
  } catch { /* without a connection nothing is known */ } finally { asking = false; }
}

/** Starts to notice whether a person is here. */
export function startAway() {
  live.subscribe((is) => { if (is && marked === 0) void comeBack(); });
  const here = () => {
    const since = Date.now() - marked;
    if (!live.peek() || marked === 0 || away.peek() || since < MARK_MS) return;
    void (since >= AWAY_MS ? comeBack() : mark());
  };
  for (const event of ['pointerdown', 'keydown']) addEventListener(event, here, { passive: true, capture: true });
}

function dismiss() {
  const d = away.peek();
  if (!d) return;
  markSeen(Date.parse(d.until));
  away.value = null;
  spoken.value = 'marked as seen';
  void mark(true);
  requestAnimationFrame(() => document.getElementById('now-title')?.focus());
}

/** What it cost and what changed, in words. @param {Digest} d */
function sums(d) {
  const parts = [];
  if (d.cost_usd > 0) parts.push(`It cost ${money(d.cost_usd)}.`);
  else if (d.tokens > 0) parts.push(`${tokens(d.tokens)} tokens were used.`);
  if (d.landed > 0) parts.push(`${plural(d.landed, 'task')} landed with ${plural(d.files_changed, 'changed file')}.`);
  if (d.more) parts.push(`${count(d.more)} more things happened.`);
  if (d.cut) parts.push('The journal has more changes than were read.');
  return parts.join(' ');
}

/** @type {Record<string, string>} */
const MARKS = { failed: '\u2715', done: '\u2713', answered: '?', worked: '\u25cb' };

/** A link of the server, if it is one into this page. @param {string} page */
const safe = (page) => (/^#\/[^\s]{0,300}$/.test(page) ? page : '#/now');

export function Away() {
  const d = away.value;
  if (!d || asOf.value > 0) return null;
  const until = Date.parse(d.until);
  return html`<section class="now-part now-away" aria-labelledby="now-away"><header><h3 id="now-away">While you were away</h3><span class="num soft">${span(until - Date.parse(d.since))}</span>
      <button type="button" class="order order-quiet now-seen" onClick=${dismiss}><${Icon} name="check" /><span>Seen</span></button></header>
    <ul class="now-rows">${(d.lines ?? []).map((l, n) => html`<li key=${n} class="now-row"><i class="away-mark away-${plain(l.kind, 12)}" aria-hidden="true">${MARKS[l.kind] ?? '\u25cb'}</i>
      <div class="now-what"><a class="link away-link" href=${safe(l.page)}>${plain(l.text, 400)}</a></div>
      <p class="now-facts num">${l.seq ? html`<a class="link" title="The page as it was then" href="${safe(l.page)}?at=${l.seq}"><time datetime=${plain(l.at, 40)}>${shortMoment(Date.parse(l.at), until)}</time></a>` : html`<time datetime=${plain(l.at, 40)}>${shortMoment(Date.parse(l.at), until)}</time>`}</p></li>`)}</ul>
    ${sums(d) && html`<p class="soft away-sums">${sums(d)}</p>`}</section>`;
}
