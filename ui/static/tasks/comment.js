// A comment on a line, which stays over the rounds, and the form that writes one.

import { html, useEffect, useRef, useSignal } from '../shell/lib.js';
import { Act, Fault } from '../shell/orderbutton.js';
import { Icon } from '../shell/icons.js';
import { lines, plain } from '../shell/text.js';
import { spot } from '../shell/router.js';
import { addComment, changeComment, keyOf, removeComment, resolveComment } from './actions.js';
import { editing, placeless } from './state.js';
import { commentState, isNew, placeOf } from './words.js';

/** Longest comment in bytes; the server accepts no longer one. */
const COMMENT_MAX = 10_000;

/** @param {{task: string, at: NonNullable<typeof editing.value>, text: string, name: string}} props name: what is commented on */
export function CommentForm({ task, at, text: first, name }) {
  const text = useSignal(first);
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  useEffect(() => { field.current?.focus(); }, []);
  const close = () => { editing.value = null; };
  const send = async () => {
    const words = text.value.trim();
    if (!words) { field.current?.focus(); return false; }
    return at.id ? changeComment(task, at.id, words) : addComment(task, { file: at.file, line: at.line, old: at.old, quote: at.quote, text: words });
  };
  return html`<form class="comment comment-form" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); void send(); }}>
    <textarea ref=${field} rows="3" maxlength=${COMMENT_MAX} aria-label=${`Comment on ${name}`} placeholder="What should be different here?" value=${text.value} onInput=${(/** @type {any} */ e) => { text.value = e.target.value; }}
      onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); void send(); } if (e.key === 'Escape') { e.preventDefault(); e.stopPropagation(); if (text.value.trim() === first) close(); } }}></textarea>
    <div class="comment-foot"><${Act} at=${keyOf('comment', task)} look="primary" icon="check" label=${at.id ? 'Save' : 'Add comment'} act=${send} />
      <button type="button" class="plain-button" onClick=${close}>Cancel</button><span class="soft comment-hint">kept until you request changes</span></div>
    <${Fault} at=${keyOf('comment', task)} />
  </form>`;
}

/** @param {{task: string, comment: import('../shell/api.js').TaskComment, name: string, place: string, where?: boolean}} props where: say the place, too */
export function Comment({ task, comment: c, name, place, where }) {
  const at = editing.value;
  if (at && at.id === c.id) return html`<${CommentForm} key=${c.id} task=${task} at=${at} text=${c.text} name=${name} />`;
  const done = c.state === 'resolved';
  return html`<div class="comment comment-${isNew(c) ? 'new' : c.state ?? 'open'} ${spot.value === `comment-${c.id}` ? 'spot' : ''}" id=${where ? undefined : `spot-comment-${c.id}`}><div class="comment-text"><p class="comment-where">${where && html`<code>${name}</code> `}${commentState(c)}</p><p>${lines(c.text)}</p>${c.about && html`<pre class="comment-about">${lines(c.about.join('\n'))}</pre>`}</div>
    <div class="comment-tools">${!isNew(c) ? html`<button type="button" class="plain-button" onClick=${() => void resolveComment(task, c.id, !done)}>${done ? 'Reopen' : 'Resolve'}<span class="hidden"> the comment on ${name}</span></button>` : html`<button type="button" class="icon-button" aria-label="Change the comment on ${name}" title="Change" onClick=${() => { editing.value = { place, file: c.file ?? '', line: c.line ?? 0, old: c.old ?? false, quote: c.quote ?? '', id: c.id }; }}><${Icon} name="pen" /></button>
      <button type="button" class="icon-button" aria-label="Remove the comment on ${name}" title="Remove" onClick=${() => void removeComment(task, c.id)}><${Icon} name="close" /></button>`}</div>
    <${Fault} at=${keyOf('remove', `${task} ${c.id}`)} /></div>`;
}

/** Comments on the whole task, and those whose place is gone. @param {{task: string}} props */
export function Placeless({ task }) {
  return html`${placeless.value.map((c) => html`<${Comment} key=${c.id} task=${task} comment=${c} name=${c.file ? `${plain(c.file, 200)}${c.line ? `:${c.line}` : ''}, which is gone` : 'the task'} place=${placeOf(c.file ?? '', c.line ?? 0, c.old ?? false)} where />`)}`;
}
