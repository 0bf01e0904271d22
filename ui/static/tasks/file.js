// The changes of one file: its head, and its rows when it comes near the view.

import { html, useEffect, useRef, useSignal } from '../shell/lib.js';
import { plain } from '../shell/text.js';
import { Icon } from '../shell/icons.js';
import { watchNear } from './near.js';
import { Others, Rows } from './rows.js';
import { byPlace, editing, rowsOf, setViewed, viewed, viewKey } from './state.js';
import { fileNotes, placeOf, some } from './words.js';

/** The height of a row that is not wrapped. */
const ROW_PX = 20;
/** Changed lines above which a file is not opened by itself. */
const OPEN_LINES_MAX = 6000;

/** Has an element been near the view? @param {{current: HTMLElement | null}} ref @param {boolean} first */
function useNear(ref, first) {
  const near = useSignal(first);
  useEffect(() => (near.peek() ? undefined : watchNear(/** @type {HTMLElement} */ (ref.current), (is) => { if (is) near.value = true; })), []);
  return near.value;
}

/** @param {{task: string, changes: import('../shell/api.js').TaskChanges, n: number}} props */
export function File({ task, changes, n }) {
  const f = changes.files[n];
  const key = viewKey(changes, f.name);
  const seen = viewed.value.has(key);
  const open = useSignal(f.added + f.deleted <= OPEN_LINES_MAX && n < 100 && !seen);
  const ref = useRef(/** @type {HTMLElement | null} */ (null));
  const near = useNear(ref, n === 0);
  const data = useSignal(/** @type {import('../shell/api.js').ChangedRows | null} */ (null));
  const wrong = useSignal('');
  const wanted = near && open.value;
  useEffect(() => {
    let gone = false;
    if (wanted) rowsOf(changes, n).then((d) => { if (!gone) { data.value = d; wrong.value = ''; } }, (err) => { if (!gone) wrong.value = err instanceof Error ? err.message : String(err); });
    return () => { gone = true; };
  }, [wanted, changes.from, changes.to, n]);
  const d = data.value;
  const name = plain(f.name, 300);
  const said = [...byPlace.value.values()].flat().filter((c) => c.at?.file === f.name && c.state !== 'resolved').length;
  const guess = Math.min(OPEN_LINES_MAX, f.added + f.deleted + 6) * ROW_PX;
  return html`<section class="df" id="file-${n}" ref=${ref} aria-label=${name}>
    <header class="df-head"><button type="button" class="df-toggle" aria-expanded=${open.value ? 'true' : 'false'} onClick=${() => { open.value = !open.value; }}><${Icon} name=${open.value ? 'open' : 'shut'} /><span class="df-name">${f.old_name ? html`<span class="soft">${plain(f.old_name, 300)} \u2192 </span>` : ''}<bdi>${name}</bdi></span></button>
      ${fileNotes(f).map((w) => html`<span key=${w} class="df-tag">${plain(w, 80)}</span>`)}
      ${said > 0 && html`<span class="df-said num">${some(said, 'comment', 'comments')}</span>`}
      ${!f.binary && html`<span class="num df-sum"><span class="diff-added">+${f.added}</span> <span class="diff-deleted">\u2212${f.deleted}</span></span>`}
      <button type="button" class="df-viewed" aria-pressed=${seen ? 'true' : 'false'} onClick=${() => { setViewed(key, !seen); open.value = seen; }}><span aria-hidden="true">${seen ? '\u2611' : '\u2610'}</span> Viewed<span class="hidden"> ${name}</span></button>
      <button type="button" class="icon-button df-comment" aria-label="Comment on the file ${name}" title="Comment on the file" onClick=${() => { open.value = true; editing.value = { place: placeOf(f.name, 0, false), file: f.name, line: 0, old: false, quote: '', id: 0 }; }}><${Icon} name="comment" /></button></header>
    ${open.value && (wrong.value ? html`<p class="df-note df-wrong">${plain(wrong.value, 400)}</p>`
      : !d ? html`<div class="df-wait" style=${{ height: `${guess}px` }}></div>`
      : d.too_large ? html`<p class="df-note">The file is too large to be compared here; <code>fairlead diff ${plain(task, 48)}</code> shows it.</p>`
      : d.binary ? html`<p class="df-note">A binary file; its content is not shown.</p><div class="df-rows"><${Others} task=${task} file=${f.name} rows=${[]} /></div>`
      : (d.rows ?? []).length === 0 ? html`<p class="df-note">${f.status === 'renamed' || f.old_mode ? 'The content is the same.' : 'The file is empty.'}</p><div class="df-rows"><${Others} task=${task} file=${f.name} rows=${[]} /></div>`
      : html`<${Rows} task=${task} file=${f.name} data=${d} />`)}
  </section>`;
}
