// The field for a message, and the mode in which it meets the current turn.

import { say } from './actions.js';
import { count, plural } from '../shell/format.js';
import { html, useSignal } from '../shell/lib.js';
import { asked, clearFault } from '../shell/orders.js';
import { live } from '../shell/connection.js';
import { MODES, STATES } from './words.js';
import { plain } from '../shell/text.js';
import { Fault } from '../shell/orderbutton.js';
import { Icon } from '../shell/icons.js';
import { useWords } from '../shell/textfield.js';

/** @typedef {import('../shell/api.js').Channel} Channel */

/** Longest message in bytes, the same limit as the server's. */
const MESSAGE_BYTES_MAX = 128 * 1024;
/** Unanswered messages listed one by one. */
const OPEN_SHOWN_MAX = 40;

/** What was begun and not sent, by channel, while the page lives. @type {Map<string, string>} */
const drafts = new Map();

/** Messages of people that no agent has answered yet. @param {{c: Channel}} props */
function Open({ c }) {
  const open = (c.open ?? []).filter((m) => m.state === 'queued' || m.state === 'delivered');
  if (open.length === 0) return null;
  const queued = open.filter((m) => m.state === 'queued').length;
  return html`<details class="open-messages"><summary>${plural(open.length, 'message')} not answered${queued > 0 ? html`, <span class="num">${count(queued)}</span> not delivered` : ''}</summary>
    <ul tabIndex=${0} aria-label="Messages not answered">${open.slice(0, OPEN_SHOWN_MAX).map((m) => html`<li key=${m.n}><span class="num">${m.n}</span> ${plain(m.by, 60)}, ${plain(m.mode, 20)}: ${STATES[m.state]?.words ?? plain(m.state, 20)}</li>`)}
      ${open.length > OPEN_SHOWN_MAX && html`<li>and ${count(open.length - OPEN_SHOWN_MAX)} more</li>`}</ul></details>`;
}

/** @param {{c: Channel}} props */
export function Composer({ c }) {
  const chosen = useSignal(''); // '' means the channel's default
  const mode = chosen.value || c.mode || 'inject';
  const words = useWords(drafts, c.name, MESSAGE_BYTES_MAX, async (text) => {
    const taken = await say(c.name, text, mode);
    if (taken) chosen.value = '';
    return taken;
  });
  const off = !live.value || asked.value !== '' || !words.text.value.trim() || words.long || !c.configured;

  const go = async () => { if (!off) await words.send(); };
  const about = mode === 'interrupt' && c.lead ? `Interrupts the turn until ${plain(c.lead, 40)} has answered you; then the turn continues.` : MODES[mode]?.about ?? '';
  return html`<form class="composer composer-${plain(mode, 12)}" aria-label="Write a message" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); void go(); }}>
    <${Open} c=${c} />
    <div class="composer-box"><label class="hidden" for="words">Message to ${plain(c.name, 80)}</label>
      <textarea id="words" ref=${words.field} rows="1" placeholder=${c.configured ? `Message to #${plain(c.name, 40)}` : 'This channel is closed for messages'} aria-describedby="mode-about" value=${words.text.value}
        onInput=${(/** @type {any} */ e) => { words.write(e.target.value); clearFault('say'); }} ...${words.keys(go)}></textarea>
      <button type="submit" class="order order-send" aria-disabled=${off ? 'true' : undefined} aria-busy=${asked.value === 'say' ? 'true' : undefined}><${Icon} name="send" /><span>Send</span></button></div>
    <div class="composer-foot"><fieldset class="seg modes"><legend class="hidden">Mode</legend>${Object.entries(MODES).map(([key, m]) => html`<label key=${key} class="mode ${mode === key ? 'mode-on' : ''}" title=${m.about}><input type="radio" class="hidden" name="mode" value=${key} checked=${mode === key} onChange=${() => { chosen.value = key; }} />${m.name}</label>`)}</fieldset>
      <p id="mode-about" class="mode-about">${words.long ? html`<span class="too-long">${count(words.size)} bytes; ${count(MESSAGE_BYTES_MAX)} at most. What is longer is a file.</span>` : html`${about}${mode === c.mode ? html` <span class="soft">The default here.</span>` : ''}`}</p></div>
    <${Fault} at="say" />
  </form>`;
}
