// The messages of one member, the newest at the end, with a search.

import { moment, shortClock } from '../shell/format.js';
import { shortSession } from './words.js';
import { html, useEffect, useLayoutEffect, useRef, useSignal } from '../shell/lib.js';
import { now } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { search, loading, olderSaid, said, saidReader } from './transcript.js';
import { Jump, useFollow } from '../shell/follow.js';
import { Icon } from '../shell/icons.js';
import { spot } from '../shell/router.js';
import { Words } from '../channels/entrylist.js';

/** @typedef {import('../shell/api.js').Said} Said */

/** Time without typing after which a search starts. */
const TYPED_MS = 250;
/** Longest search text, the same limit as the server's. */
const SEARCH_MAX = 200;

/** @param {{m: Said, day: string}} props */
const Message = ({ m, day }) => html`<article class="told ${spot.value === String(m.seq) ? 'spot' : ''}" data-k=${m.seq}>
  ${day && html`<p class="told-session"><span>${day}</span></p>`}
  <p class="told-when soft"><time class="num" datetime=${m.at} title=${moment(Date.parse(m.at), now.peek())}>${shortClock(Date.parse(m.at))}</time>${m.channel && html`<a class="link" href="#/channels/${encodeURIComponent(m.channel)}">#${plain(m.channel, 60)}</a>`}</p>
  <${Words} text=${m.text} /></article>`;

/** The divider between messages of different sessions or days. @param {Said[]} list @param {number} i */
function between(list, i) {
  const m = list[i], last = list[i - 1];
  const on = new Date(m.at).toDateString();
  if (last && last.session === m.session && new Date(last.at).toDateString() === on) return '';
  return `${new Date(m.at).toLocaleDateString('en-GB', { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' })}${m.session ? `, session ${shortSession(m.session)}` : ''}`;
}

/** @param {{speaker: string, session: string}} props session: its last one, to choose from */
export function Transcript({ speaker, session }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const words = useSignal('');
  const text = useSignal('');
  const only = useSignal(false);
  const follow = useFollow(box, () => {});
  const anchor = useRef(/** @type {{key: string, top: number} | null} */ (null));
  const drawn = useRef(0);
  const list = said.value, h = loading.value;

  useEffect(() => {
    const timer = setTimeout(() => { text.value = words.value.trim(); }, TYPED_MS);
    return () => clearTimeout(timer);
  }, [words.value]);

  useEffect(() => {
    follow.restart();
    drawn.current = 0;
    search({ speaker, session: only.value ? session : '', text: text.value }, Number(spot.value));
    return () => search(null);
  }, [speaker, only.value && session, text.value, spot.value]);

  useEffect(() => {
    saidReader.before = () => {
      const part = box.current?.querySelector('.told');
      anchor.current = part instanceof HTMLElement ? { key: part.dataset.k ?? '', top: part.getBoundingClientRect().top } : null;
    };
    return () => { saidReader.before = () => {}; };
  }, []);

  useLayoutEffect(() => {
    const el = box.current, a = anchor.current;
    anchor.current = null;
    const last = list.length ? list[list.length - 1].seq : 0;
    const added = list.filter((m) => m.seq > drawn.current).length;
    const begun = drawn.current > 0;
    drawn.current = Math.max(drawn.current, last);
    const part = a && el?.querySelector(`.told[data-k="${CSS.escape(a.key)}"]`);
    if (el && a && part && begun) el.scrollTop += part.getBoundingClientRect().top - a.top;
    follow.drawn(begun ? added : 0);
  }, [list]);

  return html`<div class="said">
    <div class="said-tools" role="search"><label class="field"><${Icon} name="search" /><span class="hidden">Search the transcript</span>
      <input id="said-search" type="search" placeholder="Search" autocomplete="off" spellcheck=${false} maxlength=${SEARCH_MAX} value=${words.value} onInput=${(/** @type {any} */ e) => { words.value = e.target.value; }} /></label>
      ${session && html`<button type="button" class="chip" aria-pressed=${only.value ? 'true' : 'false'} onClick=${() => { only.value = !only.value; }}>Last session only</button>`}</div>
    <div class="said-frame"><div class="said-box" ref=${box} onScroll=${follow.onScroll} tabIndex=${0} role="region" aria-label="Messages of ${plain(speaker, 64)}">
      ${h.older ? html`<p class="tape-note entries-edge">${h.busy ? 'Searching earlier messages\u2026' : html`<button type="button" class="link" onClick=${olderSaid}>Earlier messages</button>`}</p>`
        : h.known && list.length > 0 && html`<p class="tape-note entries-edge">No earlier messages${text.value ? ' with these words' : ''}.</p>`}
      ${h.known && list.length === 0 && !h.older && html`<p class="quiet-note">${text.value ? 'No message of this member has these words.' : 'No messages yet.'}</p>`}
      ${!h.known && html`<p class="quiet-note">${h.wrong ? plain(h.wrong, 300) : 'Loading messages\u2026'}</p>`}
      ${list.map((m, i) => html`<${Message} key=${`${m.seq}/${i - list.findIndex((x) => x.seq === m.seq)}`} m=${m} day=${between(list, i)} />`)}
    </div><${Jump} follow=${follow} /></div>
    ${h.wrong && h.known && html`<p class="tape-foot">${plain(h.wrong, 300)}</p>`}
  </div>`;
}
