// The changes of one file. Everything in it is an agent's text and is shown as text.
//
// The rows are drawn in blocks when they come near the view, so that a long file scrolls as fast as a
// short one. One row of a file is in the tab order; the arrow keys move between rows, Enter comments.

import { html, useEffect, useMemo, useRef, useSignal } from '../shell/lib.js';
import { plain, reveal } from '../shell/text.js';
import { Icon } from '../shell/icons.js';
import { Comment, CommentForm } from './comment.js';
import { byPlace, editing, rowsOf } from './state.js';
import { fileNotes, placeOf, some } from './words.js';

/** @typedef {import('../shell/api.js').DiffRow} DiffRow */

const BLOCK_ROWS = 50;
const ROW_PX = 20;
/** Distance from the view at which rows are drawn, and at which a file is requested. */
const NEAR = '1200px 0px';
/** Bytes of a line that a comment quotes; the server accepts 400. */
const QUOTE_MAX = 120;
/** Changed lines above which a file is not opened by itself. */
const OPEN_LINES_MAX = 6000;

const MARKS = { add: '+', del: '\u2212', hunk: '', same: ' ', note: '' };
const NAMES = { add: 'added line', del: 'deleted line', hunk: '', same: 'line', note: '' };

/** Is an element near the view? @param {{current: HTMLElement | null}} ref @param {boolean} [first] */
function useNear(ref, first = false) {
  const near = useSignal(first);
  useEffect(() => {
    if (near.peek() || !ref.current) return undefined;
    const watch = new IntersectionObserver((seen) => { if (seen.some((s) => s.isIntersecting)) { near.value = true; watch.disconnect(); } }, { root: ref.current.closest('.task-changes'), rootMargin: NEAR });
    watch.observe(ref.current);
    return () => watch.disconnect();
  }, []);
  return near.value;
}

/** A row's text with tabs kept and everything deceptive visible. @param {string} text */
const code = (text) => (/[^\t\x20-\x7e]/.test(text) ? text.split('\t').map(reveal).join('\t') : text);

/** @param {DiffRow} r */
const textOf = (r) => (r.t ?? []).map((t) => t.x).join('');

/** @param {{r: DiffRow, at: number, first: boolean}} props at: its place in the file */
function Row({ r, at, first }) {
  if (r.kind === 'hunk' || r.kind === 'note') return html`<div class="dl dl-${r.kind}"><span class="dl-no"></span><span class="dl-code">${code(textOf(r))}</span></div>`;
  return html`<div class="dl dl-${r.kind}"><button type="button" class="dl-no num" data-row=${at} tabIndex=${first ? 0 : -1}><span class="hidden">Comment on ${NAMES[r.kind]} </span><span class="dl-old">${r.old || ''}</span><span class="dl-new">${r.new || ''}</span></button><span class="dl-mark" aria-hidden="true">${MARKS[r.kind]}</span><span class="dl-code">${(r.t ?? []).map((t) => (t.c || t.m ? html`<span class="${t.c ? `tk-${t.c}` : ''}${t.m ? ' tk-changed' : ''}">${code(t.x)}</span>` : code(t.x)))}${r.more_bytes ? html`<span class="dl-more"> \u2026 ${some(r.more_bytes, 'more byte', 'more bytes')} of this line</span>` : ''}</span></div>`;
}

/** @param {{task: string, file: string, rows: DiffRow[], from: number, firstRow: number}} props */
function Block({ task, file, rows, from, firstRow }) {
  const ref = useRef(/** @type {HTMLElement | null} */ (null));
  const near = useNear(ref);
  const at = editing.value;
  const here = byPlace.value;
  if (!near) return html`<div ref=${ref} class="df-block" style=${{ height: `${rows.length * ROW_PX}px` }}></div>`;
  return html`<div ref=${ref} class="df-block">${rows.map((r, i) => {
    const old = r.kind === 'del', line = (old ? r.old : r.new) || 0;
    const place = line ? placeOf(file, line, old) : '';
    const said = place ? here.get(place) : undefined;
    const name = `${file.split('/').pop()}:${line}`;
    return html`<${Row} key=${i} r=${r} at=${from + i} first=${from + i === firstRow} />${said?.map((c) => html`<${Comment} key=${`c${c.id}`} task=${task} comment=${c} name=${name} place=${place} />`)}${at && place && at.id === 0 && at.place === place ? html`<${CommentForm} key="form" task=${task} at=${at} text="" name=${name} />` : ''}`;
  })}</div>`;
}

/** Comments on lines that the rows do not have, or on the whole file. @param {{task: string, file: string, rows: DiffRow[]}} props */
function Others({ task, file, rows }) {
  const shown = useMemo(() => new Set(rows.map((r) => placeOf(file, (r.kind === 'del' ? r.old : r.new) || 0, r.kind === 'del'))), [rows, file]);
  const list = [...byPlace.value].filter(([place, all]) => all[0].file === file && (!shown.has(place) || !all[0].line)).flatMap(([, all]) => all);
  const at = editing.value;
  const place = placeOf(file, 0, false);
  return html`${list.map((c) => html`<${Comment} key=${c.id} task=${task} comment=${c} name=${c.line ? `${plain(file, 200)}:${c.line}` : plain(file, 200)} place=${place} where />`)}
    ${at && at.id === 0 && at.place === place ? html`<${CommentForm} task=${task} at=${at} text="" name=${plain(file, 200)} />` : ''}`;
}

/** @param {{task: string, file: string, data: import('../shell/api.js').DiffRows}} props */
function Rows({ task, file, data }) {
  const rows = data.rows ?? [];
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const firstRow = rows.findIndex((r) => r.kind !== 'hunk' && r.kind !== 'note');
  const blocks = [];
  for (let i = 0; i < rows.length; i += BLOCK_ROWS) blocks.push(rows.slice(i, i + BLOCK_ROWS));
  const open = (/** @type {number} */ n) => {
    const r = rows[n];
    if (!r) return;
    const old = r.kind === 'del', line = (old ? r.old : r.new) || 0;
    editing.value = { place: placeOf(file, line, old), file, line, old, quote: textOf(r).trim().slice(0, QUOTE_MAX), id: 0 };
  };
  const onClick = (/** @type {any} */ e) => {
    const b = e.target.closest('button[data-row]');
    if (b) open(Number(b.dataset.row));
  };
  const onKey = (/** @type {KeyboardEvent} */ e) => {
    const b = e.target instanceof HTMLElement ? e.target.closest('button[data-row]') : null;
    if (!b || (e.key !== 'ArrowDown' && e.key !== 'ArrowUp')) return;
    const all = [...(box.current?.querySelectorAll('button[data-row]') ?? [])];
    const next = all[all.indexOf(b) + (e.key === 'ArrowDown' ? 1 : -1)];
    if (!(next instanceof HTMLElement)) return;
    e.preventDefault();
    for (const other of all) other.setAttribute('tabindex', '-1');
    next.setAttribute('tabindex', '0');
    next.focus();
  };
  return html`<div ref=${box} class="df-rows" onClick=${onClick} onKeyDown=${onKey}>
    ${data.crlf && html`<p class="df-note">All lines end with CR LF.</p>`}
    <${Others} task=${task} file=${file} rows=${rows} />
    ${blocks.map((list, i) => html`<${Block} key=${i} task=${task} file=${file} rows=${list} from=${i * BLOCK_ROWS} firstRow=${firstRow} />`)}
    ${data.more_rows ? html`<p class="df-note">${some(data.more_rows, 'more row', 'more rows')} are not shown; <code>fairlead diff</code> shows them.</p>` : ''}</div>`;
}

/** @param {{task: string, changes: import('../shell/api.js').TaskChanges, n: number}} props */
export function File({ task, changes, n }) {
  const f = changes.files[n];
  const open = useSignal(f.added + f.deleted <= OPEN_LINES_MAX && n < 100);
  const ref = useRef(/** @type {HTMLElement | null} */ (null));
  const near = useNear(ref, n === 0);
  const data = useSignal(/** @type {import('../shell/api.js').DiffRows | null} */ (null));
  const wrong = useSignal('');
  const wanted = near && open.value;
  useEffect(() => {
    let gone = false;
    if (wanted) rowsOf(changes, n).then((d) => { if (!gone) { data.value = d; wrong.value = ''; } }, (err) => { if (!gone) wrong.value = err instanceof Error ? err.message : String(err); });
    return () => { gone = true; };
  }, [wanted, changes.from, changes.to, n]);
  const d = data.value;
  const name = plain(f.name, 300);
  const said = [...byPlace.value.values()].flat().filter((c) => c.file === f.name).length;
  const guess = Math.min(OPEN_LINES_MAX, f.added + f.deleted + 6) * ROW_PX;
  return html`<section class="df" id="file-${n}" ref=${ref} aria-label=${name}>
    <header class="df-head"><button type="button" class="df-toggle" aria-expanded=${open.value ? 'true' : 'false'} onClick=${() => { open.value = !open.value; }}><${Icon} name=${open.value ? 'open' : 'shut'} /><span class="df-name">${f.old_name ? html`<span class="soft">${plain(f.old_name, 300)} \u2192 </span>` : ''}<bdi>${name}</bdi></span></button>
      ${fileNotes(f).map((w) => html`<span key=${w} class="df-tag">${plain(w, 80)}</span>`)}
      ${said > 0 && html`<span class="df-said num">${some(said, 'comment', 'comments')}</span>`}
      ${!f.binary && html`<span class="num df-sum"><span class="diff-added">+${f.added}</span> <span class="diff-deleted">\u2212${f.deleted}</span></span>`}
      <button type="button" class="icon-button df-comment" aria-label="Comment on the file ${name}" title="Comment on the file" onClick=${() => { open.value = true; editing.value = { place: placeOf(f.name, 0, false), file: f.name, line: 0, old: false, quote: '', id: 0 }; }}><${Icon} name="comment" /></button></header>
    ${open.value && (wrong.value ? html`<p class="df-note df-wrong">${plain(wrong.value, 400)}</p>`
      : !d ? html`<div class="df-wait" style=${{ height: `${guess}px` }}></div>`
      : d.too_large ? html`<p class="df-note">The file is too large to be compared here; <code>fairlead diff ${plain(task, 48)}</code> shows it.</p>`
      : d.binary ? html`<p class="df-note">A binary file; its content is not shown.</p><div class="df-rows"><${Others} task=${task} file=${f.name} rows=${[]} /></div>`
      : (d.rows ?? []).length === 0 ? html`<p class="df-note">${f.status === 'renamed' || f.old_mode ? 'The content is the same.' : 'The file is empty.'}</p><div class="df-rows"><${Others} task=${task} file=${f.name} rows=${[]} /></div>`
      : html`<${Rows} task=${task} file=${f.name} data=${d} />`)}
  </section>`;
}
