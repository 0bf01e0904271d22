// "Since you looked": what happened until a person marks it as seen, which counts for every browser of this workspace.

import * as api from '../shell/api.js';
import { computed, html, signal, useSignal } from '../shell/lib.js';
import { tell } from '../agents/actions.js';
import { teamLink } from '../history/words.js';
import { changesOf } from '../inbox/content.js';
import { needs } from '../inbox/state.js';
import { asOf, live } from '../shell/connection.js';
import { count, money, plural, shortMoment, span, tokens } from '../shell/format.js';
import { Icon } from '../shell/icons.js';
import { Refetch } from '../shell/refetch.js';
import { plain } from '../shell/text.js';
import { place, spoken } from '../shell/router.js';

/** @typedef {import('../shell/api.js').Digest} Digest */
/** @typedef {import('../shell/api.js').DigestLine} DigestLine */

/** Least time between two requests: the server reads the journal for each. */
const REST_MS = 1000;
/** Rows shown at first, and added by each "more". */
const PAGE = 12;
/** Finished tasks whose changes are requested for their numbers of lines. */
const COUNTED_MAX = 12;

const digest = signal(/** @type {Digest | null} */ (null));
/** Until when the person has seen what happened, in ms since 1970; 0: not known yet. */
export const seenAt = computed(() => (digest.value ? Date.parse(digest.value.since) : 0));

const list = new Refetch(async () => { if (asOf.peek() === 0) digest.value = await api.digest(); }, REST_MS);

/** Does a change add a line? @param {api.Change} ch */
const adds = (ch) => /^(run|question)\//.test(ch.entity) || (ch.machine === 'session' && ch.to === 'none') || ch.trigger === 'failed_for_good';

/** Requests the digest again, if the page shows it or never had it. @param {api.Change[]} [changes] absent: any may have happened */
export function refreshDigest(changes) {
  if (!digest.peek() || (place.peek() === 'now' && (!changes || changes.some(adds)))) list.want(!changes);
}

export function forgetDigest() { digest.value = null; }

/** @param {Digest} d */
async function see(d) {
  try {
    await api.markSeen(d.until);
    const fresh = await api.digest();
    if (document.activeElement?.matches('.now-seen')) document.getElementById('now-title')?.focus(); // the button disappears
    digest.value = fresh;
    spoken.value = 'marked as seen';
  } catch (err) { tell('mark as seen', err); }
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

/** Lines added and deleted by a task that has landed. @param {{line: DigestLine}} props */
function Lines({ line }) {
  const { value: c } = changesOf(line.of ?? '', line.at).value;
  if (!c || c.files.length === 0) return null;
  return html`<span><span class="diff-added">+${c.files.reduce((n, f) => n + f.added, 0)}</span> <span class="diff-deleted">\u2212${c.files.reduce((n, f) => n + f.deleted, 0)}</span></span>`;
}

export function SinceYouLooked() {
  const most = useSignal(PAGE);
  const d = digest.value;
  if (!d) return null;
  const until = Date.parse(d.until);
  const needed = new Set(needs.value.map((i) => i.run_id || i.agent));
  const lines = (d.lines ?? []).filter((l) => l.kind !== 'failed' || !needed.has(l.of ?? '')); // what needs you is not repeated
  return html`<section class="now-part" aria-labelledby="now-finished"><header><h3 id="now-finished">${d.first ? 'In the last day' : 'Since you looked'}</h3>${!d.first && html`<span class="num soft">${span(until - Date.parse(d.since))}</span>`}
      <a class="link now-more" href=${teamLink(d.first ? '' : 'since-you-looked')}>History</a>
      ${lines.length > 0 && html`<button type="button" class="order order-quiet now-seen" aria-disabled=${live.value ? undefined : 'true'} onClick=${() => { if (live.peek()) void see(d); }}><${Icon} name="check" /><span>Seen</span></button>`}</header>
    ${lines.length === 0 ? html`<p class="now-none">${d.first ? 'Nothing has finished in the last day.' : 'Nothing has finished since you looked.'}</p>`
      : html`<ul class="now-rows">${lines.slice(0, most.value).map((l, n) => html`<li key=${`${l.page} ${l.text}`} class="now-row"><i class="digest-mark digest-${plain(l.kind, 12)}" aria-hidden="true">${MARKS[l.kind] ?? '\u25cb'}</i>
      <div class="now-what"><a class="link digest-link" href=${safe(l.page)}>${plain(l.text, 400)}</a></div>
      <p class="now-facts num">${l.kind === 'done' && l.page.startsWith('#/tasks/') && n < COUNTED_MAX ? html`<${Lines} line=${l} />` : ''}${l.seq ? html`<a class="link" title="The page as it was then" href="${safe(l.page)}?at=${l.seq}"><time datetime=${plain(l.at, 40)}>${shortMoment(Date.parse(l.at), until)}</time></a>` : html`<time datetime=${plain(l.at, 40)}>${shortMoment(Date.parse(l.at), until)}</time>`}</p></li>`)}</ul>`}
    ${lines.length > most.value && html`<button type="button" class="plain-button" onClick=${() => { most.value += PAGE; }}>${lines.length - most.value} more</button>`}
    ${sums(d) && html`<p class="soft digest-sums">${sums(d)}</p>`}</section>`;
}
