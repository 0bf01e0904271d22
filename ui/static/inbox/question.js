// One question of an agent: what it wants, why it asks, its deadline, and the buttons.

import { answerQuestion, answerKey } from './actions.js';
import { block, callOf, choices, maySayYes, untilWhen } from './words.js';
import * as api from '../shell/api.js';
import { html, useSignal } from '../shell/lib.js';
import { seenUntil } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { Act, Fault } from '../shell/orderbutton.js';
import { Icon } from '../shell/icons.js';

/** @typedef {import('../shell/api.js').Asked} Asked */

/** Longest answer in characters, the same limit as the server's. */
const TEXT_MAX = 16_000;
const PATHS_MAX = 12;
const CHOICES_MAX = 32;

/** @param {{q: Asked}} props */
function What({ q }) {
  const { chief, written, rest } = callOf(q.call);
  const paths = (q.paths ?? []).filter((p) => p !== chief), hints = q.hints ?? [], differs = q.differs ?? [];
  return html`
    ${q.what && q.kind === 'question' ? html`<pre class="ask-words">${block(q.what)}</pre>` : q.what && q.what !== chief && html`<p class="ask-what">${plain(q.what, 600)}</p>`}
    ${chief && html`<pre class="ask-call">${chief}</pre>`}
    ${written && html`<p class="soft ask-until">It would write:</p><pre class="ask-call ask-written">${written}</pre>`}
    ${rest && html`<details><summary>What else it is called with</summary><pre class="json">${rest}</pre></details>`}
    ${differs.length > 0 && html`<ul class="texts ask-differs">${differs.slice(0, PATHS_MAX).map((d, n) => html`<li key=${n}>${plain(d, 300)}</li>`)}</ul>`}
    ${paths.length > 0 && html`<ul class="texts" aria-label="Files">${paths.slice(0, PATHS_MAX).map((p, n) => html`<li key=${n}><code>${plain(p, 300)}</code></li>`)}${paths.length > PATHS_MAX && html`<li class="soft">and ${paths.length - PATHS_MAX} more</li>`}</ul>`}
    ${hints.length > 0 && html`<ul class="ask-hints" aria-label="To look at">${hints.slice(0, PATHS_MAX).map((h, n) => html`<li key=${n}><${Icon} name="look" /><span>${plain(h, 300)}</span></li>`)}</ul>`}`;
}

/** @param {{q: Asked, text: string}} props */
function Permission({ q, text }) {
  const always = useSignal(false);
  const yes = maySayYes(q);
  const at = answerKey(q.id);
  const more = text.trim() ? { text: text.trim() } : {};
  const say = (/** @type {boolean} */ allow, /** @type {api.Scope} */ scope, /** @type {string} */ words) => () => answerQuestion(q.id, { allow, scope, ...more }, words);
  return html`<div class="answer-foot" role="group" aria-label="Answers">
      ${yes && html`<${Act} at=${at} look="approve" icon="check" label="Allow once" answer="yes" act=${say(true, 'once', 'allowed once')} />`}
      ${q.may_stand && html`${yes && html`<${Act} at=${at} look="plain" icon="check" label="Allow for this session" hint="Every call like this one, until the session ends" act=${say(true, 'session', 'allowed for this session')} />`}
        <button type="button" class="order order-plain" aria-expanded=${always.value ? 'true' : 'false'} onClick=${() => { always.value = !always.value; }}><${Icon} name="clock" /><span>Always\u2026</span></button>`}
      <${Act} at=${at} look="quiet" icon="cross" label="Deny" answer="no" act=${say(false, 'once', 'denied')} />
    </div>
    ${always.value && html`<div class="ask-always" role="group" aria-label="From now on">
      <p>From now on every call exactly like this one of <b><bdi>${plain(q.agent, 80)}</bdi></b> is answered so, also tomorrow${['Write', 'Edit', 'MultiEdit', 'NotebookEdit'].includes(q.tool ?? '') ? ': every change of the same file, whatever is written' : ''}. It can be taken back below the inbox.</p>
      <div class="answer-foot">${yes && html`<${Act} at=${at} look="approve" icon="check" label="Always allow" act=${say(true, 'always', 'always allowed')} />`}
        <${Act} at=${at} look="plain" icon="cross" label="Always deny" act=${say(false, 'always', 'always denied')} /></div></div>`}`;
}

/** The answers that the program offers. @param {{q: Asked, text: string}} props */
function Choices({ q, text }) {
  const list = choices(q);
  if (list.length === 0) return null;
  const at = answerKey(q.id);
  const more = text.trim() ? { text: text.trim() } : {};
  const pick = (/** @type {import('./words.js').Choice} */ c) => () => answerQuestion(q.id, { allow: c.allow ?? true, option: c.id, scope: /** @type {const} */ ('once'), ...more }, `answered ${plain(c.label, 60)}`);
  return html`<div class="ask-choices" role="group" aria-label=${q.kind === 'permission' ? 'Its own answers' : 'Answers'}>
    ${q.kind === 'permission' && html`<p class="soft">It also offers, in its own words:</p>`}
    <div class="answer-foot">${list.slice(0, CHOICES_MAX).map((c) => html`<${Act} key=${c.id} at=${at} look=${c.allow === false ? 'quiet' : 'plain'} icon=${c.allow === false ? 'cross' : 'check'} label=${plain(c.label, 120)} hint=${plain(c.kind, 60)} act=${pick(c)} />`)}</div></div>`;
}

/** The content of a card about a question. @param {{q: Asked, id: string}} props */
export function AskBody({ q, id }) {
  const text = useSignal('');
  const nowMs = seenUntil.value + api.skew.ms;
  const words = q.kind !== 'resume' && q.kind !== 'host_lost' && (q.kind === 'permission' || q.free_text || choices(q).length === 0);
  const send = () => answerQuestion(q.id, { allow: true, text: text.value.trim(), scope: 'once' }, 'answered');
  return html`<${What} q=${q} />
    <p class="ask-until soft">${q.why ? `Asked because ${plain(q.why, 400)}. ` : ''}It ${untilWhen(q, nowMs)}.</p>
    <form class="ask-form" onSubmit=${(/** @type {Event} */ e) => e.preventDefault() /* Enter in a field must not allow */} aria-label="Answer to ${plain(q.id, 40)}">
      ${words && html`<div class="entry"><label for="${id}-text">${q.kind === 'question' ? 'Your answer' : 'A word with it'}${q.kind === 'permission' && html`<span class="soft"> (optional)</span>`}</label>
        ${q.kind === 'question' ? html`<textarea id="${id}-text" rows="3" maxlength=${TEXT_MAX} value=${text.value} onInput=${(/** @type {any} */ e) => { text.value = e.target.value; }}></textarea>`
          : html`<input id="${id}-text" type="text" maxlength=${TEXT_MAX} autocomplete="off" value=${text.value} onInput=${(/** @type {any} */ e) => { text.value = e.target.value; }} />`}</div>`}
      ${q.kind === 'permission' && html`<${Permission} q=${q} text=${text.value} />`}
      <${Choices} q=${q} text=${text.value} />
      ${q.kind === 'question' && words && html`<div class="answer-foot"><${Act} at=${answerKey(q.id)} look="plain" icon="send" label="Send answer" answer="yes" act=${async () => (text.value.trim() ? send() : document.getElementById(`${id}-text`)?.focus())} /></div>`}
    </form>
    <${Fault} at=${answerKey(q.id)} />`;
}
