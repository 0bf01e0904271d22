// The field for an input to a session, and the inputs that wait.

import { count, plural } from '../shell/format.js';
import { html } from '../shell/lib.js';
import { asked, clearFault } from '../shell/orders.js';
import { sendInput } from './actions.js';
import { mute } from './words.js';
import { live } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { Icon } from '../shell/icons.js';
import { useWords } from '../shell/textfield.js';

/** Longest input in bytes, the same limit as the server's. */
const INPUT_BYTES_MAX = 64 * 1024;

/** Unsent text, by session, until the page is closed. @type {Map<string, string>} */
const drafts = new Map();

/** @param {{v: import('../shell/api.js').DispatchView}} props */
export function InputForm({ v }) {
  const s = v.session;
  const words = useWords(drafts, s.name, INPUT_BYTES_MAX, (text) => sendInput(s.name, text));
  const no = mute(s);
  const off = !live.value || asked.value !== '' || !words.text.value.trim() || words.long;
  const waiting = v.waiting ?? [];

  const go = async () => { if (!off) await words.send(); };
  return html`<section class="card say-card" aria-label="Input">
    ${no ? html`<p class="soft say-mute">${no}</p>` : html`<form aria-label="Write a message" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); void go(); }}>
      <div class="composer-box"><label class="hidden" for="words">Input for this dispatch</label>
        <textarea id="words" ref=${words.field} rows="1" placeholder="What is to be done?" aria-describedby="say-about" value=${words.text.value}
          onInput=${(/** @type {any} */ e) => { words.write(e.target.value); clearFault('session'); }} ...${words.keys(go)}></textarea>
        <button type="submit" class="order order-send" aria-disabled=${off ? 'true' : undefined} aria-busy=${asked.value === 'session' ? 'true' : undefined}><${Icon} name="send" /><span>Send</span></button></div>
      <p id="say-about" class="entry-about soft">${words.long ? html`<span class="too-long">${count(words.size)} bytes; ${count(INPUT_BYTES_MAX)} at most. What is longer is a file: name it.</span>` : s.conversation ? `${plain(s.conversation, 20)} is open: what you say now waits for its end.` : 'Each input is a conversation of its own.'}</p></form>`}
    ${waiting.length > 0 && html`<div class="waiting"><h4>${plural(waiting.length, 'input')} waiting</h4><ol>${waiting.slice(0, 64).map((w, i) => html`<li key=${i}>${plain(w.text, 200)}${w.agent && html`<span class="soft"> for ${plain(w.agent, 80)}</span>`}</li>`)}</ol></div>`}
  </section>`;
}
