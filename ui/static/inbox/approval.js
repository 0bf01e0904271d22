// A step's request for approval, and the form for the answer. The request and its fields are shown
// as text.

import { answerOf, formOf, held, TITLE_MAX, touched } from './form.js';
import { html, useMemo, useSignal } from '../shell/lib.js';
import { answerStep, asking, keyOf } from '../runs/actions.js';
import { live } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { Icon } from '../shell/icons.js';
import { focusOn, useFocus } from '../shell/focus.js';

/** @typedef {import('./form.js').Field} Field */

/** Longest answer in characters; the server accepts no larger body. */
const INPUT_MAX = 500_000;
const NOTE_MAX = 1000;

/** @param {{field: Field, at: string, value: string | boolean, fault: string, set: (value: string | boolean) => void}} props */
function Entry({ field: f, at, value, fault, set }) {
  const label = plain(f.title, TITLE_MAX);
  const about = plain(f.about, 400);
  const typed = (/** @type {any} */ e) => set(e.target.value);
  const common = { id: at, 'aria-describedby': `${at}-about`, 'aria-invalid': fault ? 'true' : undefined };
  if (f.kind === 'check') {
    return html`<div class="entry"><label class="check"><input type="checkbox" ...${common} checked=${value === true} onChange=${(/** @type {any} */ e) => set(e.target.checked)} /><span>${label}</span></label>
      <p class="soft entry-about" id="${at}-about">${about}</p></div>`;
  }
  return html`<div class="entry"><label for=${at}>${label}${f.required ? html`<span class="soft"> (needed)</span>` : ''}</label>
    ${f.kind === 'choice' ? html`<select ...${common} value=${value} onChange=${typed}><option value="">\u2013</option>${f.choices.map((c, i) => html`<option key=${i} value=${String(i)}>${plain(String(c), 200)}</option>`)}</select>`
      : f.kind === 'long' ? html`<textarea ...${common} rows="4" maxlength=${INPUT_MAX} value=${value} onInput=${typed}></textarea>`
      : html`<input ...${common} type="text" inputmode=${f.kind === 'text' ? 'text' : f.kind === 'integer' ? 'numeric' : 'decimal'} maxlength=${INPUT_MAX} autocomplete="off" value=${value} onInput=${typed} />`}
    <p class="entry-about ${fault ? 'entry-fault' : 'soft'}" id="${at}-about">${fault ? `${fault}. ` : ''}${about}</p></div>`;
}

/**
 * @param {{run: string, step: string, schema?: string, bad?: string, path?: string, shown?: string, card?: boolean, id: string}} props id: makes the names of the fields its own; shown: the answer is for exactly that; card: with less beside it
 */
export function Answer({ run, step, schema, bad, path, shown, card, id }) {
  const form = useMemo(() => formOf(schema), [schema]);
  const values = useSignal(/** @type {Record<string, string | boolean>} */ ({}));
  const text = useSignal('');
  const note = useSignal('');
  const noting = useSignal(false);
  const noteField = useFocus(`${id}-note`);
  const faults = useSignal(/** @type {{name: string, words: string}[]} */ ([]));
  const busy = asking.value !== '';
  const off = busy || !live.value;

  const send = async (/** @type {boolean} */ yes) => {
    if (off) return;
    faults.value = [];
    let input = '';
    if (!form) {
      input = text.value.trim();
      if (input) {
        try { JSON.parse(input); } catch (err) { faults.value = [{ name: '', words: `this is no JSON: ${err instanceof Error ? err.message : err}` }]; return; }
      } else if (yes) { faults.value = [{ name: '', words: 'an answer is needed' }]; return; }
    } else if (form.fields.length > 0 || form.approved) {
      const made = answerOf(form.fields, values.value);
      if (yes && made.faults.length > 0) { faults.value = made.faults; return; }
      if (form.approved) made.answer.approved = yes;
      if (yes || (touched(form.fields, values.value) && made.faults.length === 0)) input = JSON.stringify(made.answer);
    }
    if (await answerStep(run, step, yes, { ...(note.value.trim() && { note: note.value.trim() }), ...(input && { input }), ...(shown && { shown }) })) {
      values.value = {}; text.value = ''; note.value = '';
    }
  };
  const faultOf = (/** @type {string} */ name) => faults.value.find((f) => f.name === name)?.words ?? '';
  return html`<form class="answer" onSubmit=${(/** @type {Event} */ e) => e.preventDefault() /* Enter in a field must not approve */} aria-label="Answer to ${plain(step, 64)}">
    ${bad && html`<p class="worry-box"><${Icon} name="look" /><span>The last answer was invalid: ${plain(bad, 600)}</span></p>`}
    ${form ? form.fields.map((f, i) => html`<${Entry} key=${f.name} field=${f} at="${id}-${i}" value=${held(values.value, f)} fault=${faultOf(f.name)}
        set=${(/** @type {string | boolean} */ v) => { values.value = { ...values.value, [f.name]: v }; }} />`)
      : html`<div class="entry"><label for="${id}-json">Answer, as JSON</label><textarea id="${id}-json" rows="6" spellcheck=${false} class="json" maxlength=${INPUT_MAX} aria-describedby="${id}-json-about" value=${text.value} onInput=${(/** @type {any} */ e) => { text.value = e.target.value; }}></textarea>
        <p id="${id}-json-about" class="entry-about ${faultOf('') ? 'entry-fault' : 'soft'}">${plain(faultOf(''), 300)}</p>
        <details><summary>Request</summary><pre class="json">${plain(schema ?? '', 20_000)}</pre></details></div>`}
    ${card && !noting.value ? html`<p><button type="button" class="link" onClick=${() => { noting.value = true; focusOn(`${id}-note`); }}>Add a note</button></p>` : html`<div class="entry"><label for="${id}-note">Note, for the journal</label><input ref=${noteField} id="${id}-note" type="text" maxlength=${NOTE_MAX} autocomplete="off" value=${note.value} onInput=${(/** @type {any} */ e) => { note.value = e.target.value; }} /></div>`}
    <div class="answer-foot">
      <button type="button" class="order order-approve" data-answer="yes" aria-disabled=${off ? 'true' : undefined} aria-busy=${asking.value === keyOf('approve', run, step) ? 'true' : undefined} onClick=${() => void send(true)}><${Icon} name="check" /><span>Approve</span></button>
      <button type="button" class="order order-quiet" data-answer="no" aria-disabled=${off ? 'true' : undefined} aria-busy=${asking.value === keyOf('reject', run, step) ? 'true' : undefined} onClick=${() => void send(false)}><${Icon} name="cross" /><span>Reject</span></button>
      ${path && !card && html`<span class="soft answer-path">or put a JSON file at <code>${plain(path, 200)}</code></span>`}
    </div></form>`;
}
