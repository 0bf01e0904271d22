// One conversation: its dialogue and its output files. All of it is shown as text.

import * as api from '../shell/api.js';
import { moment, plural, size } from '../shell/format.js';
import { html, useEffect, useMemo, useSignal } from '../shell/lib.js';
import { refreshConversation, shownConversation, conversationWrong } from './state.js';
import { sectionsOf } from './words.js';
import { live, now } from '../shell/connection.js';
import { revealLines } from '../channels/words.js';
import { plain } from '../shell/text.js';
import { showDispatch } from '../shell/router.js';
import { Icon } from '../shell/icons.js';
import { Words } from '../channels/entrylist.js';

/** Bytes shown of a file; the whole file can be saved. */
const SHOWN_BYTES_MAX = 256 << 10;
/** Sections shown at first, the newest ones. */
const SECTIONS_FIRST = 120;
/** A dialogue can grow without a change in the journal, so the page requests it at this interval. */
const LOOK_AGAIN_MS = 4000;

/** @typedef {import('../shell/api.js').DispatchDialogue} DispatchDialogue */

/** @param {{session: string, t: DispatchDialogue, file: {name: string, bytes: number, changed_at: string}}} props */
function Output({ session, t, file: f }) {
  const text = useSignal(/** @type {string | null} */ (null));
  const wrong = useSignal('');
  const toggle = async () => {
    if (text.value !== null) { text.value = null; return; }
    wrong.value = '';
    try { text.value = await api.outputFile(session, t.n, f.name, SHOWN_BYTES_MAX); }
    catch (err) { wrong.value = err instanceof Error ? err.message : String(err); }
  };
  const save = async () => {
    wrong.value = '';
    try { await api.saveOutputFile(session, t.n, f.name); }
    catch (err) { wrong.value = err instanceof Error ? err.message : String(err); }
  };
  return html`<li class="output-file"><p class="output-file-head"><code><bdi>${plain(f.name, 300)}</bdi></code><span class="soft num">${size(f.bytes)}, ${moment(Date.parse(f.changed_at), now.value)}</span>
      <span class="output-file-acts"><button type="button" class="link" aria-expanded=${text.value !== null ? 'true' : 'false'} onClick=${() => void toggle()}>${text.value === null ? 'Show' : 'Hide'}<span class="hidden"> ${plain(f.name, 100)}</span></button>
      <button type="button" class="link" onClick=${() => void save()}>Save<span class="hidden"> ${plain(f.name, 100)}</span></button></span></p>
    ${wrong.value && html`<p class="entry-fault" role="alert">${plain(wrong.value, 300)}</p>`}
    ${text.value !== null && html`<div class="output-file-text"><pre class="say-code" tabIndex=${0} aria-label="Content of ${plain(f.name, 100)}">${revealLines(text.value) || '(empty)'}</pre>${f.bytes > SHOWN_BYTES_MAX && html`<p class="soft">The first ${size(SHOWN_BYTES_MAX)} are shown; save the file to read all of it.</p>`}</div>`}</li>`;
}

/** @param {{text: string}} props */
function Dialogue({ text }) {
  const more = useSignal(SECTIONS_FIRST);
  const all = useMemo(() => sectionsOf(text), [text]);
  const first = Math.max(0, all.length - more.value);
  return html`<div class="dialogue">${first > 0 && html`<button type="button" class="link" onClick=${() => { more.value += SECTIONS_FIRST; }}>Show ${plural(first, 'earlier part')}</button>`}
    ${all.slice(first).map((s, i) => html`<section key=${first + i} class="dlg ${s.at ? 'dlg-timed' : ''} ${s.move ? 'dlg-move' : ''}">${(s.at || s.title) && html`<p class="dlg-title">${s.title}${s.at && html` <time class="num" datetime=${s.at}>${s.at.slice(11)}</time>`}</p>`}${s.text && html`<${Words} text=${s.text} />`}</section>`)}
    ${all.length === 0 && html`<p class="soft">Empty so far.</p>`}</div>`;
}

/** @param {{v: import('../shell/api.js').DispatchView, n: number}} props */
export function Conversation({ v, n }) {
  const t = shownConversation.value, session = v.session.name;
  const open = t?.open === true;
  useEffect(() => {
    if (!open) return undefined;
    const timer = setInterval(() => { if (live.peek() && !document.hidden) refreshConversation(); }, LOOK_AGAIN_MS);
    return () => clearInterval(timer);
  }, [open]);
  const back = html`<button type="button" class="link conv-back" onClick=${() => showDispatch(session)}><${Icon} name="back" />The whole dispatch</button>`;
  if (!t || t.n !== n) return html`<div class="conv">${back}<p class="quiet-note">${conversationWrong.value ? plain(conversationWrong.value, 400) : 'Loading messages\u2026'}</p></div>`;
  const outputs = t.outputs ?? [], elsewhere = (t.files ?? []).filter((f) => !f.output);
  return html`<article class="conv" aria-labelledby="conv-title">${back}
    <header class="conv-head"><h3 id="conv-title">${plain(t.id, 20)}</h3>${open && html`<span class="tag">open</span>`}${t.began && html`<time class="num soft" datetime=${t.began}>${moment(Date.parse(t.began), now.value)}</time>`}
      ${(t.agents ?? []).map((a) => html`<span key=${a} class="conv-agent"><bdi>${plain(a, 80)}</bdi></span>`)}</header>
    <p class="conv-summary">${plain(t.summary, 600)}</p>
    ${(t.notes ?? []).map((w, i) => html`<p key=${i} class="worry-box"><${Icon} name="look" /><span>${plain(w, 400)}</span></p>`)}
    <section class="card" aria-labelledby="outputs-title"><h4 id="outputs-title">Outputs</h4>
      ${outputs.length === 0 ? html`<p class="soft">No file was made in <code>outputs/</code>.</p>` : html`<ul class="output-files">${outputs.map((f) => html`<${Output} key=${f.name} session=${session} t=${t} file=${f} />`)}</ul>`}
      ${t.outputs_left_out > 0 && html`<p class="soft">and ${plural(t.outputs_left_out, 'more file')}</p>`}
      ${elsewhere.length > 0 && html`<h4>Elsewhere, where the input named it</h4><ul class="texts">${elsewhere.slice(0, 60).map((f) => html`<li key=${f.path}><code>${plain(f.path, 400)}</code> <span class="soft">${plain(f.summary, 200)}</span></li>`)}</ul>`}</section>
    <section class="card" aria-labelledby="dialogue-title"><h4 id="dialogue-title">Dialogue</h4>
      ${t.dialogue_left_out > 0 && html`<p class="soft">${size(t.dialogue_left_out)} of it are not shown; all of it is in <code>dialogue.md</code>.</p>`}
      <${Dialogue} text=${t.dialogue} /></section></article>`;
}
