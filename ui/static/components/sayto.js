// Where a person says something to a session, and what waits behind what is open.

import { count, plural } from '../format.js';
import { html, useLayoutEffect, useRef, useSignal } from '../lib.js';
import { asked, forgive } from '../orders.js';
import { sayTo } from '../sessionactions.js';
import { mute } from '../sessionwords.js';
import { live } from '../state.js';
import { plain } from '../text.js';
import { Icon } from './marks.js';

/** Longest input in bytes, as the server has it. */
const INPUT_BYTES_MAX = 64 * 1024;
const HEIGHT_MAX_PX = 180;

/** What was begun and not sent, by session, while the page lives. @type {Map<string, string>} */
const drafts = new Map();
const touch = matchMedia('(pointer: coarse)');

/** @param {{v: import('../api.js').DispatchView}} props */
export function SayTo({ v }) {
  const s = v.session;
  const text = useSignal(drafts.get(s.name) ?? '');
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const no = mute(s);
  const size = text.value.length * 3 > INPUT_BYTES_MAX ? new TextEncoder().encode(text.value).length : 0;
  const off = !live.value || asked.value !== '' || !text.value.trim() || size > INPUT_BYTES_MAX;
  const waiting = v.waiting ?? [];

  useLayoutEffect(() => {
    const el = field.current;
    if (!el) return;
    el.style.height = 'auto';
    el.style.height = `${Math.min(HEIGHT_MAX_PX, el.scrollHeight + 2)}px`;
  }, [text.value]);

  const write = (/** @type {string} */ words) => {
    text.value = words;
    if (words) drafts.set(s.name, words); else drafts.delete(s.name);
  };
  const send = async () => {
    if (off) return;
    const words = text.value;
    write('');
    if (!await sayTo(s.name, words)) write(words + (text.value ? `\n${text.value}` : '')); // nothing is lost that was not taken
    field.current?.focus();
  };
  // Enter sends, but where it is a touch away: there it makes a line.
  const sends = (/** @type {KeyboardEvent} */ e) => e.key === 'Enter' && !e.isComposing && !e.shiftKey && (!touch.matches || e.ctrlKey || e.metaKey);
  return html`<section class="card say-card" aria-label="Input">
    ${no ? html`<p class="soft say-mute">${no}</p>` : html`<form aria-label="Say something" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); void send(); }}>
      <div class="composer-box"><label class="hidden" for="words">What you say to this session</label>
        <textarea id="words" ref=${field} rows="1" placeholder="What is to be done?" aria-describedby="say-about" value=${text.value}
          onInput=${(/** @type {any} */ e) => { write(e.target.value); forgive('session'); }} onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (sends(e)) { e.preventDefault(); void send(); } }} onKeyPress=${(/** @type {KeyboardEvent} */ e) => { if (sends(e)) e.preventDefault(); }}></textarea>
        <button type="submit" class="order order-send" aria-disabled=${off ? 'true' : undefined} aria-busy=${asked.value === 'session' ? 'true' : undefined}><${Icon} name="send" /><span>Send</span></button></div>
      <p id="say-about" class="entry-about soft">${size > INPUT_BYTES_MAX ? html`<span class="too-long">${count(size)} bytes; ${count(INPUT_BYTES_MAX)} at most. What is longer is a file: name it.</span>` : s.conversation ? `${plain(s.conversation, 20)} is open: what you say now waits for its end.` : 'Each input is a conversation of its own.'}</p></form>`}
    ${waiting.length > 0 && html`<div class="waiting"><h4>${plural(waiting.length, 'input')} waiting</h4><ol>${waiting.slice(0, 64).map((w, i) => html`<li key=${i}>${plain(w.text, 200)}${w.agent && html`<span class="soft"> for ${plain(w.agent, 80)}</span>`}</li>`)}</ol></div>`}
  </section>`;
}
