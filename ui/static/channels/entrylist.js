// The conversation in a channel: messages of people and agents, and turns. All of it is shown
// as text.

import { haveRead } from './state.js';
import { moment, shortClock } from '../shell/format.js';
import { html, useEffect, useLayoutEffect, useMemo, useRef, useSignal } from '../shell/lib.js';
import { now } from '../shell/connection.js';
import { entries, following, keyOf, newer, newest, older, reader, reading } from './entries.js';
import { blocksOf, initials, MODES, piecesOf, STATES, turnLine } from './words.js';
import { plain } from '../shell/text.js';
import { Jump, useFollow } from '../shell/follow.js';
import { Icon } from '../shell/icons.js';
import { spot } from '../shell/router.js';

/** @typedef {import('../shell/api.js').Channel} Channel */
/** @typedef {import('../shell/api.js').Entry} Entry */
/** @typedef {import('./words.js').Block} Block */

/** Longer text is cut and shown in full on demand. */
const SHOWN_CHARS_MAX = 6000, SHOWN_LINES_MAX = 60;
/** At this distance from an end the window grows there. */
const NEAR_PX = 600;

const dayFormat = new Intl.DateTimeFormat('en-GB', { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });

/** @param {string} text */
const inline = (text) => text.split(/(`[^`\n]{1,200}`)/).map((part, i) => (i % 2 ? html`<code key=${i}>${part.slice(1, -1)}</code>` : part));

/** @param {{text: string}} props */
export function Words({ text }) {
  const all = useSignal(false);
  const lines = text.split('\n').length;
  const long = text.length > SHOWN_CHARS_MAX || lines > SHOWN_LINES_MAX;
  const shown = long && !all.value ? text.split('\n', SHOWN_LINES_MAX).join('\n').slice(0, SHOWN_CHARS_MAX) : text;
  const pieces = useMemo(() => piecesOf(shown), [shown]);
  return html`<div class="say-text">${pieces.map((p, i) => (p.code ? html`<pre key=${i} class="say-code">${p.text}</pre>` : html`<p key=${i}>${inline(p.text)}</p>`))}
    ${pieces.length === 0 && html`<p class="soft">(empty)</p>`}
    ${long && html`<button type="button" class="link say-more" aria-expanded=${all.value ? 'true' : 'false'} onClick=${() => { all.value = !all.value; }}>${all.value ? 'Show less' : `Show all of it, ${lines > 1 ? `${lines} lines` : `${text.length} characters`}`}</button>`}</div>`;
}

/** @param {{entry: Entry}} props */
function Standing({ entry: e }) {
  const state = STATES[e.state ?? ''];
  return html`<p class="say-state say-state-${plain(e.state, 12)}"><span aria-hidden="true">${state?.mark ?? '\u00b7'}</span> ${state?.words ?? plain(e.state, 20)}<span class="soft">${MODES[e.mode ?? '']?.name.toLowerCase() ?? plain(e.mode, 20)}</span></p>`;
}

/** @param {{b: Extract<Block, {type: 'words'}>}} props */
function Speech({ b }) {
  const human = b.kind === 'human';
  const label = b.kind === 'aside' ? (b.re ? `aside, to message ${b.re}` : 'aside') : b.kind === 'late' ? `late: ${b.turn ? `turn ${b.turn} was over` : 'it had no turn'}, so this moved nothing` : '';
  return html`<article class="say say-${b.kind}">
    <span class="say-face" aria-hidden="true">${initials(plain(b.by, 40))}</span>
    <header class="say-head"><h3><bdi>${plain(b.by, 80) || 'unknown'}</bdi></h3>${label && html`<span class="say-label">${label}</span>`}
      <time class="num" datetime=${b.at} title=${moment(Date.parse(b.at), now.peek())}>${shortClock(Date.parse(b.at))}</time></header>
    ${b.list.map((e) => html`<div key=${keyOf(e)} class="say-part" data-k=${keyOf(e)}><${Words} text=${e.text ?? ''} />${human && html`<${Standing} entry=${e} />`}</div>`)}
  </article>`;
}

/** @param {{list: Entry[]}} props */
function Turns({ list }) {
  const line = turnLine(list);
  if (!line) return null;
  return html`<p class="turns" data-k=${keyOf(list[0])}><span>${line.turn && html`<span class="num turns-n">${line.turn}</span>`}
    ${line.chain.length > 0 && html`<span class="turns-chain">${line.chain.map((n, i) => html`${i > 0 && html`<span class="turns-to" aria-label="to"> \u2192 </span>`}<b><bdi>${plain(n, 60)}</bdi></b>`)}</span>`}
    ${line.notes.length > 0 && html`<span class="turns-notes">${line.notes.join('; ')}</span>`}</span></p>`;
}

/** An announcement begins with an emoji in the seed's text; the page shows an icon of its own. @param {{entry: Entry}} props */
function Notice({ entry: e }) {
  const text = plain(e.text, 600).replace(/^[\u23f1\u26a0]\ufe0f?\s*/, '');
  return html`<p class="notice notice-${e.kind === 'warning' ? 'warning' : 'said'}" data-k=${keyOf(e)}><${Icon} name=${(e.text ?? '').startsWith('\u23f1') ? 'clock' : 'look'} /><span>${text}</span><time class="num soft" datetime=${e.at}>${shortClock(Date.parse(e.at))}</time></p>`;
}

/** @param {Block} b */
function draw(b) {
  switch (b.type) {
    case 'day': return html`<p key=${b.key} class="day"><span>${dayFormat.format(Date.parse(b.at))}</span></p>`;
    case 'turns': return html`<${Turns} key=${b.key} list=${b.list} />`;
    case 'notice': return html`<${Notice} key=${b.key} entry=${b.entry} />`;
    default: return html`<${Speech} key=${b.key} b=${b} />`;
  }
}

/** @param {Block} b */
const entriesOf = (b) => (b.type === 'day' ? [] : b.type === 'notice' ? [b.entry] : b.list);

/** Blocks that did not change are not drawn again. */
class Sheet {
  constructor() {
    /** @type {Map<string, {of: Entry[], drawn: any}>} */
    this.known = new Map();
  }

  /** @param {Block[]} blocks */
  draw(blocks) {
    const next = new Map();
    const drawn = blocks.map((b) => {
      const of = entriesOf(b), old = this.known.get(b.key);
      const same = old && old.of.length === of.length && old.of.every((e, i) => e === of[i]);
      const one = same ? old : { of, drawn: draw(b) };
      next.set(b.key, one);
      return one.drawn;
    });
    this.known = next;
    return drawn;
  }
}

/** @param {{c: Channel}} props */
export function Entries({ c }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const sheet = useMemo(() => new Sheet(), []);
  const anchor = useRef(/** @type {{key: string, top: number} | null} */ (null));
  const drawnTo = useRef(0);
  const shownSpot = useRef(''); // the entry that a link led to, once it was shown
  const follow = useFollow(box, (now) => { following.now = now; });
  const list = entries.value, t = reading.value;
  const blocks = useMemo(() => blocksOf(list), [list]);
  const lastSeq = list.length ? list[list.length - 1].seq : 0;
  const atNewest = follow.following.value && !t.newer;

  useEffect(() => {
    following.now = true;
    reader.before = () => {
      const el = box.current;
      anchor.current = null;
      if (!el || following.now) return;
      const edge = el.getBoundingClientRect().top;
      for (const part of el.querySelectorAll('[data-k]')) {
        const r = part.getBoundingClientRect();
        if (r.bottom <= edge) continue;
        anchor.current = { key: /** @type {HTMLElement} */ (part).dataset.k ?? '', top: r.top };
        return;
      }
    };
    return () => { reader.before = () => {}; following.now = true; };
  }, []);

  useLayoutEffect(() => {
    const el = box.current, a = anchor.current;
    anchor.current = null;
    const want = spot.peek();
    if (el && want && shownSpot.current !== `${c.name} ${want}` && list.length > 0) {
      const part = el.querySelector(`[data-k^="${CSS.escape(want)}/"]`);
      if (part) {
        shownSpot.current = `${c.name} ${want}`;
        following.now = false;
        follow.stay();
        part.classList.add('spot');
        part.scrollIntoView({ block: 'center' });
      }
    }
    const added = list.filter((e) => e.seq > drawnTo.current && e.kind !== 'moved').length;
    const begun = drawnTo.current > 0;
    drawnTo.current = Math.max(drawnTo.current, lastSeq);
    if (el && a) {
      const part = el.querySelector(`[data-k="${CSS.escape(a.key)}"]`);
      if (part) el.scrollTop += part.getBoundingClientRect().top - a.top;
    }
    follow.drawn(begun ? added : 0);
    if (el && t.older && !t.busy && el.scrollHeight < el.clientHeight + NEAR_PX) void older();
  }, [list]);

  useEffect(() => { if (atNewest) haveRead(c.name, c.messages); }, [atNewest, c.messages, c.name]);

  const onScroll = () => {
    const el = box.current;
    if (!el) return;
    // Following makes sense only if the window reaches the newest entry.
    if (!reading.peek().newer) follow.onScroll();
    if (el.scrollTop < NEAR_PX && reading.peek().older) void older();
    if (el.scrollHeight - el.scrollTop - el.clientHeight < NEAR_PX && reading.peek().newer) void newer();
  };
  const jump = () => { follow.jump(); following.now = true; if (reading.peek().newer) newest(c.name); };
  const working = (c.agents ?? []).filter((m) => m.working);
  return html`<div class="entries-frame">
    <div class="entries" ref=${box} onScroll=${onScroll} tabIndex=${0} role="region" aria-label="Messages in ${plain(c.name, 80)}">
      ${t.older ? html`<p class="tape-note entries-edge">${t.busy === 'older' ? 'Loading earlier messages\u2026' : html`<button type="button" class="link" onClick=${() => void older()}>Earlier messages</button>`}</p>`
        : t.known && list.length > 0 && html`<p class="tape-note entries-edge">Here #${plain(c.name, 80)} begins.</p>`}
      ${t.known && list.length === 0 && html`<div class="empty entries-empty"><h3>No messages yet</h3><p>${(c.agents ?? []).length > 0 ? 'The agent with the first turn gets your message.' : 'Your message waits for the first agent of the channel.'}</p></div>`}
      ${!t.known && html`<p class="tape-note entries-edge">${t.wrong ? plain(t.wrong, 300) : 'Loading messages\u2026'}</p>`}
      <div class="sheet">${sheet.draw(blocks)}</div>
      ${atNewest && working.length > 0 && html`<p class="working"><span class="working-dots" aria-hidden="true"><i></i><i></i><i></i></span><span>${working.slice(0, 3).map((m) => plain(m.name, 40)).join(', ')}${working.length > 3 ? ` and ${working.length - 3} more` : ''} ${working.length === 1 ? 'is' : 'are'} answering</span></p>`}
    </div>
    <${Jump} follow=${{ ...follow, jump }} />
    ${t.wrong && t.known && html`<p class="tape-foot">${plain(t.wrong, 300)}</p>`}
  </div>`;
}
