// The command palette: a field, and below it the places, actions and results that fit.
//
// It is a combobox with a list: the focus stays in the field, and the chosen option is named by
// aria-activedescendant.

import { html, useEffect, useLayoutEffect, useRef, useSignal } from '../shell/lib.js';
import { moment } from '../shell/format.js';
import { now } from '../shell/connection.js';
import { Icon } from '../shell/icons.js';
import { dialog } from '../shell/router.js';
import { plain, reveal } from '../shell/text.js';
import { commandsFor } from './commands.js';
import { found, moreResults, query, QUERY_MAX, results, stop, type } from './state.js';
import { linkOf, piecesOf, wordsOf } from './words.js';

/** @typedef {import('../shell/api.js').SearchResult} SearchResult */
/** @typedef {{key: string, group: string, draw: () => any, run: () => void}} Option */

/** @param {SearchResult} r @param {number} i @returns {Option} */
function resultOption(r, i) {
  const at = Date.parse(r.at);
  const open = () => {
    const link = linkOf(r.link);
    if (!link) return;
    if (location.hash === link) dispatchEvent(new HashChangeEvent('hashchange'));
    else location.hash = link;
  };
  return {
    key: `result ${i}`, group: 'Found', run: open,
    draw: () => html`<span class="find-where"><b><bdi>${plain(r.entity, 80)}</bdi></b>${r.part ? html`<span>${plain(r.part, 60)}</span>` : ''}<span class="find-kind">${plain(r.kind, 20)}</span>
        <time class="num" datetime=${plain(r.at, 40)}>${moment(at, now.peek())}</time></span>
      <span class="find-text">${piecesOf(r.snippet ?? '', r.matches).map((p, n) => (p.hit ? html`<mark key=${n}>${reveal(p.text)}</mark>` : html`<span key=${n}>${reveal(p.text)}</span>`))}</span>`,
  };
}

/** @param {import('./commands.js').Command} c @returns {Option} */
const commandOption = (c) => ({
  key: c.id, group: c.group, run: c.run,
  draw: () => html`<${Icon} name=${c.icon} /><span class="find-label"><bdi>${c.label}</bdi></span>${c.hint && html`<span class="find-hint">${c.hint.length === 1 ? html`<kbd>${c.hint}</kbd>` : c.hint}</span>`}`,
});

/** The words below the list. @param {number} shown */
function stateWords(shown) {
  const f = found.value;
  if (f.wrong) return plain(f.wrong, 300);
  if (f.busy) return 'Searching\u2026';
  if (!f.of) return 'Type a word to search what was said, done, asked and changed.';
  const more = f.next > 0 ? ', and more' : '';
  const words = [shown === 0 ? 'Nothing was found.' : `${shown} found${more}, the newest first.`];
  if (f.stopped) words.push(plain(f.stopped, 200) + '.');
  if (f.behind > 100) words.push(`The index is being built: ${f.behind} changes are not in it yet.`);
  return words.join(' ');
}

export function Palette() {
  return dialog.value === 'find' ? html`<${Open} />` : null;
}

function Open() {
  const box = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const at = useSignal(0);
  const chosen = useRef(/** @type {Option | null} */ (null));

  useEffect(() => {
    const el = /** @type {HTMLDialogElement} */ (box.current);
    const before = document.activeElement;
    el.showModal();
    field.current?.focus();
    field.current?.select();
    if (query.peek()) type(query.peek());
    return () => {
      stop();
      // After a choice the focus belongs to what was opened.
      if (!chosen.current && before instanceof HTMLElement) before.focus();
    };
  }, []);

  const words = wordsOf(query.value);
  const options = [...commandsFor(words).map(commandOption), ...results.value.map(resultOption)];
  const last = options.length - 1;
  const index = Math.min(at.value, Math.max(0, last));
  const groups = [...new Set(options.map((o) => o.group))];

  useLayoutEffect(() => { list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' }); }, [index, options.length]);

  const close = () => { dialog.value = ''; };
  const choose = (/** @type {Option | undefined} */ o) => {
    if (!o) return;
    chosen.current = o;
    close();
    o.run();
  };
  const onKey = (/** @type {KeyboardEvent} */ e) => {
    /** @type {Record<string, number>} */
    const to = { ArrowDown: index >= last ? 0 : index + 1, ArrowUp: index <= 0 ? last : index - 1, PageDown: Math.min(last, index + 6), PageUp: Math.max(0, index - 6) };
    if (e.isComposing) return;
    if (e.key in to) { e.preventDefault(); at.value = to[e.key]; if (to[e.key] === last) moreResults(); }
    else if (e.key === 'Enter') { e.preventDefault(); choose(options[index]); }
    else if (e.key === 'Escape') { e.preventDefault(); close(); }
  };
  const onScroll = () => { const el = list.current; if (el && el.scrollHeight - el.scrollTop - el.clientHeight < 200) moreResults(); };

  let n = 0;
  return html`<dialog ref=${box} class="find" aria-label="Search and commands" onClose=${close} onClick=${(/** @type {any} */ e) => { if (e.target === box.current) close(); }}>
    <div class="find-body"><div class="find-field"><${Icon} name="search" />
      <input ref=${field} id="find" type="text" role="combobox" aria-label="Search, go to a place, or do something" aria-expanded="true" aria-controls="find-list" aria-autocomplete="list"
        aria-activedescendant=${options.length ? `find-${index}` : undefined} placeholder="Search, go to, do\u2026" autocomplete="off" autocapitalize="off" spellcheck=${false} maxlength=${QUERY_MAX} enterkeyhint="go"
        value=${query.value} onInput=${(/** @type {any} */ e) => { at.value = 0; type(e.target.value); }} onKeyDown=${onKey} />
      <button type="button" class="icon-button" aria-label="Close" onClick=${close}><${Icon} name="close" /></button></div>
      <div ref=${list} id="find-list" class="find-list" role="listbox" aria-label="Places, actions and results" onScroll=${onScroll}>
        ${groups.map((g) => html`<div key=${g} role="group" aria-labelledby=${`find-${g.replace(' ', '-')}`}><p id=${`find-${g.replace(' ', '-')}`} role="presentation" class="find-group">${g}</p>
          ${options.filter((o) => o.group === g).map((o) => { const i = n++; return html`<div key=${o.key} id=${`find-${i}`} role="option" class="find-option ${g === 'Found' ? 'find-result' : ''}" aria-selected=${i === index ? 'true' : 'false'}
            onMouseMove=${() => { if (at.peek() !== i) at.value = i; }} onClick=${() => choose(options[i])}>${o.draw()}</div>`; })}</div>`)}
      </div>
      <p class="find-state" role="status">${stateWords(results.value.length)}</p></div>
  </dialog>`;
}
