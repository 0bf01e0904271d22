// The output of an agent, live. All of it is shown as text.

import * as api from '../shell/api.js';
import { outcomeOf } from './words.js';
import { count, plural, size } from '../shell/format.js';
import { html, useEffect, useLayoutEffect, useRef, useSignal } from '../shell/lib.js';
import { LINES_MAX, Output } from './output.js';
import { plain, reveal } from '../shell/text.js';
import { sessionShown, showSession, spot } from '../shell/router.js';
import { Facts } from './facts.js';
import { End, Jump, SpotEnd, useFollow } from '../shell/follow.js';
import { Icon } from '../shell/icons.js';

/** @typedef {import('./output.js').Line} Line */

/** @param {import('./ansi.js').Line} line @param {HTMLElement} [el] */
function lineElement(line, el = document.createElement('div')) {
  el.className = 'line';
  el.textContent = line.text || '\u00a0';
  if (line.redrawn > 0) el.append(' ', note(`drawn over ${plural(line.redrawn, 'time')}`));
  if (line.more > 0) el.append(' ', note(`\u2026 ${count(line.more)} more characters in this line, not shown`));
  return el;
}

/** @param {string} text */
function note(text) {
  const el = document.createElement('span');
  el.className = 'line-note';
  el.textContent = text;
  return el;
}

/** Updates the lines without the framework: there are thousands, and only the end changes. */
class Paper {
  /** @param {HTMLElement} el */
  constructor(el) {
    this.el = el;
    this.last = -1;
    this.version = -1;
    this.partial = document.createElement('div');
    this.drawnPartial = '';
  }

  /** @param {Output} out @param {boolean} [marked] the first line is the place that a link leads to @returns {number} lines added */
  draw(out, marked = false) {
    if (out.version !== this.version) {
      this.el.textContent = '';
      this.last = -1;
      this.version = out.version;
    }
    const lines = out.lines;
    let from = lines.length;
    while (from > 0 && lines[from - 1].key > this.last) from--;
    const added = lines.length - from;
    if (added > 0) {
      const fragment = document.createDocumentFragment();
      for (let i = from; i < lines.length; i++) {
        const el = lineElement(lines[i]);
        if (marked && lines[i].key === 0) el.classList.add('spot');
        fragment.append(el);
      }
      this.partial.remove();
      this.el.append(fragment);
      this.last = lines[lines.length - 1].key;
      while (this.el.childElementCount > LINES_MAX) this.el.firstElementChild?.remove();
    }
    const p = out.partial;
    const looks = `${p.text}\u0000${p.more}\u0000${p.redrawn}`;
    if (looks !== this.drawnPartial || added > 0) {
      this.drawnPartial = looks;
      if (p.text || p.more) this.el.append(lineElement(p, this.partial));
      else this.partial.remove();
    }
    return added;
  }
}

/** @param {{session: string, onFollow: (following: boolean, jumped: boolean) => void, from?: number}} props from: the offset that a link leads to */
export function Tape({ session, onFollow, from = -1 }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const sheet = useRef(/** @type {HTMLDivElement | null} */ (null));
  const source = useRef(/** @type {Output | null} */ (null));
  const shown = useSignal({ start: -1, end: 0, dropped: 0, over: false, outcome: '', why: '', missing: false, lines: 0, cut: false });
  const follow = useFollow(box, onFollow);

  useLayoutEffect(() => {
    const paper = new Paper(/** @type {HTMLElement} */ (sheet.current));
    let frame = 0;
    const draw = () => {
      frame = 0;
      const out = source.current;
      if (!out) return;
      const added = paper.draw(out, out.start === from);
      shown.value = { start: out.start, end: out.end, dropped: out.dropped, over: out.over, outcome: out.outcome, why: out.why, missing: out.missing, lines: out.lines.length, cut: out.cut };
      if (from < 0) follow.drawn(added);
      else if (added > 0) paper.el.querySelector('.spot')?.scrollIntoView({ block: 'nearest' });
    };
    const changed = () => { if (!frame) frame = requestAnimationFrame(draw); };
    if (from >= 0) follow.stay(); else follow.restart();
    shown.value = { ...shown.peek(), start: -1, end: 0, over: false, missing: false, lines: 0 };
    paper.el.textContent = '';
    source.current = new Output(session, changed, from);
    return () => { cancelAnimationFrame(frame); source.current?.close(); source.current = null; };
  }, [session, from]);

  const s = shown.value;
  useLayoutEffect(() => { if (from < 0) follow.drawn(0); }, [s.over, s.missing]); // keeps the end line in view
  return html`<div class="tape-frame">
    <div class="tape" ref=${box} onScroll=${follow.onScroll} tabIndex=${0} role="region" aria-label="Output of session ${plain(session, 60)}">
      ${s.start > 0 && html`<p class="tape-note">Earlier output is not loaded. <button type="button" class="link" onClick=${() => source.current?.earlier()}>Go further back</button></p>`}
      ${s.dropped > 0 && html`<p class="tape-note">${plural(s.dropped, 'earlier line')} let go to keep this page fast; all of it is in the saved file.</p>`}
      <div class="sheet" ref=${sheet}></div>
      ${s.missing && html`<p class="tape-note">There is no output for this session.</p>`}
      ${!s.missing && s.end === 0 && !s.over && html`<p class="tape-note">No output yet.</p>`}
      ${s.over && html`<${End} outcome=${s.outcome} why=${s.why} />`}
      ${from >= 0 && html`<${SpotEnd} session=${session} />`}
    </div>
    ${from < 0 && html`<${Jump} follow=${follow} />`}
    <p class="tape-foot"><span class="num">${size(s.end)}</span> of output${!s.over && s.end > 0 ? (follow.following.value ? ', following' : ', paused here') : ''}</p>
  </div>`;
}

/** The session at which a reader scrolled back: the page stays with it when the next one begins. */
let turnedBack = '';

/** @param {{cell: import('./state.js').Cell, sessions: import('../shell/api.js').Session[]}} props */
export function OutputTab({ cell: c, sessions }) {
  // An exec agent writes plain text; the other drivers understand a protocol.
  const facts = useSignal(c.agent.peek().driver !== 'exec');
  const hidden = useSignal(document.hidden);
  const unsaved = useSignal('');
  useEffect(() => {
    const see = () => { hidden.value = document.hidden; };
    document.addEventListener('visibilitychange', see);
    if (turnedBack && sessionShown.peek() === turnedBack) sessionShown.value = ''; // the tab was closed meanwhile, and shows the end again
    turnedBack = '';
    return () => document.removeEventListener('visibilitychange', see);
  }, []);
  const running = c.agent.value.session?.id ?? '';
  const from = spot.value && sessionShown.value ? Number(spot.value) : -1;
  const ids = [...new Set([from >= 0 ? sessionShown.value : '', running, ...sessions.map((s) => s.id), ...c.runs.value.map((r) => r.id).reverse()])].filter(Boolean);
  const id = sessionShown.value || running || ids[0] || '';
  if (!id) {
    return html`<div class="quiet-note"><p>No session yet. What this agent says appears here while it runs.</p></div>`;
  }
  const known = new Map(sessions.map((s) => [s.id, s]));
  const onFollow = (/** @type {boolean} */ following, /** @type {boolean} */ jumped) => {
    if (!following && !sessionShown.value) { turnedBack = id; sessionShown.value = id; }
    if (following && turnedBack && sessionShown.value === turnedBack && (jumped || id === running)) { turnedBack = ''; sessionShown.value = ''; }
  };
  const save = async (/** @type {string} */ session) => {
    unsaved.value = '';
    try { await api.saveOutput(session, `${reveal(session).replace(/[^\w.-]+/g, '_')}.log`); }
    catch (err) { unsaved.value = plain(err instanceof Error ? err.message : err, 300); }
  };
  return html`<div class="output">
    <div class="output-bar">
      <label class="pick"><span class="hidden">Session</span>
        <select value=${sessionShown.value} onChange=${(/** @type {any} */ e) => { turnedBack = ''; showSession(e.target.value); }}>
          <option value="">${running ? `Now: ${plain(running, 60)}` : `Latest: ${plain(ids[0], 60)}`}</option>
          ${ids.map((x) => html`<option key=${x} value=${x}>${plain(x, 60)}, ${plain(outcomeOf(known.get(x)?.outcome ?? c.runs.value.find((r) => r.id === x)?.outcome).label, 20)}</option>`)}
        </select></label>
      <span class="seg" role="group" aria-label="Form">
        <button type="button" aria-pressed=${facts.value ? 'false' : 'true'} onClick=${() => { facts.value = false; }}>As said</button>
        <button type="button" aria-pressed=${facts.value ? 'true' : 'false'} onClick=${() => { facts.value = true; }}>Understood</button>
      </span>
      <button type="button" class="link save" onClick=${() => void save(id)}><${Icon} name="save" />Save</button>
      ${unsaved.value && html`<p class="entry-fault" role="alert">${unsaved.value}</p>`}
    </div>
    ${hidden.value ? html`<div class="tape-frame"></div>` // a browser opens six connections to a server; hidden pages give theirs back
      : html`<${facts.value ? Facts : Tape} key=${`${facts.value} ${id} ${from}`} session=${id} from=${from} onFollow=${onFollow} />`}
  </div>`;
}
