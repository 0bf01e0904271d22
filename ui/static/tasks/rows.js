// The rows of one file. Everything in it is an agent's text and is shown as text.
//
// Only rows near the view are drawn, in blocks. The other blocks hold their lines as plain text, so that a long
// file has few elements and is still found by the browser's search, read by a screen reader, and copied. One row
// of a file is in the tab order; the arrow keys move between rows, Enter comments.

import { html, useComputed, useEffect, useLayoutEffect, useMemo, useRef, useSignal } from '../shell/lib.js';
import { plain, reveal } from '../shell/text.js';
import { Comment, CommentForm } from './comment.js';
import { later, notLater, soon, watchNear } from './near.js';
import { byPlace, editing } from './state.js';
import { placeOf, some } from './words.js';

/** @typedef {import('../shell/api.js').ChangedRow} ChangedRow */

const BLOCK_ROWS = 25;
/** The width of a character beside the font size of the page: rows have 0.75 of it, and a character is 0.6 as wide as high. */
const ROW_FONT = 0.75 * 0.6;
/** Bytes of a line that a comment quotes; the server accepts 400. */
const QUOTE_MAX = 120;

const MARKS = { add: '+', del: '\u2212', hunk: '', same: ' ', note: '' };
const NAMES = { add: 'added line', del: 'deleted line', hunk: '', same: 'line', note: '' };

/** A row's text with tabs kept and everything deceptive visible. @param {string} text */
const code = (text) => (/[^\t\x20-\x7e]/.test(text) ? text.split('\t').map(reveal).join('\t') : text);

/** @param {ChangedRow} r */
const textOf = (r) => (r.t ?? []).map((t) => t.x).join('');
/** @param {ChangedRow} r */
const isLine = (r) => r.kind !== 'hunk' && r.kind !== 'note';
/** The line of a row on its own side. @param {ChangedRow} r */
const lineOf = (r) => (r.kind === 'del' ? r.old : r.new) || 0;
/** @param {string} file @param {ChangedRow} r */
const rowPlace = (file, r) => (isLine(r) && lineOf(r) ? placeOf(file, lineOf(r), r.kind === 'del') : '');
/** @param {ChangedRow} r */
const moreOf = (r) => (r.more_bytes ? ` \u2026 ${some(r.more_bytes, 'more byte', 'more bytes')} of this line` : '');

/** @param {{r: ChangedRow, at: number, active: boolean}} props at: its place in the file */
function Row({ r, at, active }) {
  if (!isLine(r)) return html`<div class="dl dl-${r.kind}"><span class="dl-no"></span><span class="dl-code">${code(textOf(r))}</span></div>`;
  return html`<div class="dl dl-${r.kind}"><button type="button" class="dl-no num" data-row=${at} tabIndex=${active ? 0 : -1}><span class="hidden">Comment on ${NAMES[r.kind]} </span><span class="dl-old">${r.old || ''}</span><span class="dl-new">${r.new || ''}</span></button><span class="dl-mark" aria-hidden="true">${MARKS[r.kind]}</span><span class="dl-code">${(r.t ?? []).map((t) => (t.c || t.m ? html`<span class="${t.c ? `tk-${t.c}` : ''}${t.m ? ' tk-changed' : ''}">${code(t.x)}</span>` : code(t.x)))}${r.more_bytes ? html`<span class="dl-more">${moreOf(r)}</span>` : ''}</span></div>`;
}

/** How many characters fit into a row, about: it decides how high a block is thought to be before it is laid out. */
function columnsNow() {
  const box = document.querySelector('.task-changes');
  if (!box) return 80;
  const narrow = innerWidth <= 820;
  return Math.max(20, Math.floor((box.clientWidth - 34 - (narrow ? 62 : 116)) / (parseFloat(getComputedStyle(document.documentElement).fontSize) * ROW_FONT)));
}

/** Does an element hold the focus, or an end of what is selected? @param {HTMLElement | null} el */
function inUse(el) {
  const s = document.getSelection();
  return !!el && (el.contains(document.activeElement) || (!!s && !s.isCollapsed && (el.contains(s.anchorNode) || el.contains(s.focusNode))));
}

/** @param {{task: string, file: string, rows: ChangedRow[], from: number, first: number, columns: number, active: import('../shell/lib.js').Signal<number>, moved: {current: boolean}}} props from, first, active: places in the file; moved: the focus goes to active */
function Block({ task, file, rows, from, first, columns, active, moved }) {
  const ref = useRef(/** @type {HTMLElement | null} */ (null));
  const near = useRef(from < 2 * BLOCK_ROWS); // the first rows are there at once
  const drawn = useSignal(near.current);
  const places = useMemo(() => new Map(rows.map((r, i) => [rowPlace(file, r), i])), []);
  const chosen = useComputed(() => (active.value >= from && active.value < from + rows.length ? active.value : -1));
  const form = useComputed(() => { const at = editing.value; return at && at.id === 0 && at.line > 0 && places.has(at.place) ? at : null; });
  const said = useComputed(() => {
    const mine = [...byPlace.value].filter(([place]) => place && places.has(place));
    return mine.length > 0 ? new Map(mine) : null;
  });
  useEffect(() => {
    const turn = () => {
      const changes = near.current !== drawn.peek() && (near.current || !inUse(ref.current));
      if (changes) drawn.value = near.current;
      return changes;
    };
    const forget = watchNear(/** @type {HTMLElement} */ (ref.current), (is) => {
      near.current = is;
      if (is) { notLater(turn); soon(turn); } else if (drawn.peek()) later(turn);
    });
    return () => { forget(); notLater(turn); };
  }, []);
  useLayoutEffect(() => {
    const b = ref.current?.querySelector(`[data-row="${chosen.value}"]`);
    if (!moved.current || !(b instanceof HTMLElement)) return;
    moved.current = false;
    b.focus();
  }, [chosen.value]);
  const size = useMemo(() => ({ '--rows': rows.reduce((n, r) => n + Math.max(1, Math.ceil((textOf(r).length + 3 * textOf(r).split('\t').length - 3) / columns)), 0) }), []); // as long as it is not laid out
  const whole = drawn.value || (chosen.value >= 0 && chosen.value !== first) || form.value || said.value;
  const text = useMemo(() => rows.map((r) => code(textOf(r)) + moreOf(r)).join('\n'), []);
  if (!whole) return html`<div ref=${ref} key="block" class="df-block df-far" style=${size}>${text}</div>`;
  return html`<div ref=${ref} key="block" class="df-block" style=${size}>${rows.map((r, i) => {
    const place = rowPlace(file, r);
    const name = `${file.split('/').pop()}:${lineOf(r)}`;
    return html`<${Row} key=${i} r=${r} at=${from + i} active=${from + i === chosen.value} />${said.value?.get(place)?.map((c) => html`<${Comment} key=${`c${c.id}`} task=${task} comment=${c} name=${name} place=${place} />`)}${place && form.value?.place === place ? html`<${CommentForm} key="form" task=${task} at=${form.value} text="" name=${name} />` : ''}`;
  })}</div>`;
}

/** Comments on lines that the rows do not have, or on the whole file. @param {{task: string, file: string, rows: ChangedRow[]}} props */
export function Others({ task, file, rows }) {
  const mine = [...byPlace.value].filter(([, all]) => all[0].at?.file === file);
  const shown = mine.length > 0 ? new Set(rows.map((r) => rowPlace(file, r))) : null;
  const list = mine.filter(([place, all]) => !shown?.has(place) || !all[0].at?.line).flatMap(([, all]) => all);
  const at = editing.value;
  const place = placeOf(file, 0, false);
  return html`${list.map((c) => html`<${Comment} key=${c.id} task=${task} comment=${c} name=${c.at?.line ? `${plain(file, 200)}:${c.at.line}` : plain(file, 200)} place=${place} where />`)}
    ${at && at.id === 0 && at.place === place ? html`<${CommentForm} task=${task} at=${at} text="" name=${plain(file, 200)} />` : ''}`;
}

/** @param {{task: string, file: string, data: import('../shell/api.js').ChangedRows}} props */
export function Rows({ task, file, data }) {
  const rows = data.rows ?? [];
  const first = rows.findIndex(isLine);
  const columns = useMemo(columnsNow, []);
  const active = useSignal(first);
  const moved = useRef(false);
  const blocks = useMemo(() => {
    const all = [];
    for (let i = 0; i < rows.length; i += BLOCK_ROWS) all.push(rows.slice(i, i + BLOCK_ROWS));
    return all;
  }, [rows]);
  /** @param {any} e @returns {number} the place of the row that an event is about, or -1 */
  const rowOf = (e) => Number(e.target.closest?.('button[data-row]')?.dataset.row ?? -1);
  const onClick = (/** @type {Event} */ e) => {
    const n = rowOf(e), r = rows[n];
    if (!r) return;
    active.value = n;
    editing.value = { place: rowPlace(file, r), file, line: lineOf(r), old: r.kind === 'del', quote: textOf(r).trim().slice(0, QUOTE_MAX), id: 0 };
  };
  const onKey = (/** @type {KeyboardEvent} */ e) => {
    const step = e.key === 'ArrowDown' ? 1 : e.key === 'ArrowUp' ? -1 : 0;
    let n = rowOf(e);
    if (n < 0 || step === 0) return;
    for (n += step; rows[n] && !isLine(rows[n]);) n += step;
    if (!rows[n]) return;
    e.preventDefault();
    moved.current = true;
    active.value = n;
  };
  return html`<div class="df-rows" onClick=${onClick} onKeyDown=${onKey}>
    ${data.crlf && html`<p class="df-note">All lines end with CR LF.</p>`}
    <${Others} task=${task} file=${file} rows=${rows} />
    ${blocks.map((list, i) => html`<${Block} key=${i} task=${task} file=${file} rows=${list} from=${i * BLOCK_ROWS} first=${first} columns=${columns} active=${active} moved=${moved} />`)}
    ${data.more_rows ? html`<p class="df-note">${some(data.more_rows, 'more row', 'more rows')} are not shown; <code>fairlead diff</code> shows them.</p>` : ''}</div>`;
}
