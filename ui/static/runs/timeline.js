// A run on a time axis: a row for each step, a bar for each attempt and each wait. Only the rows
// in view are in the page.

import * as api from '../shell/api.js';
import { clock, moment, span } from '../shell/format.js';
import { html, useEffect, useRef, useSignal } from '../shell/lib.js';
import { isOver, shown, step, stepIDs } from './state.js';
import { stepLook, tries } from './words.js';
import { now, seenUntil } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { spans, trailed } from './trail.js';
import { showRun, stepID } from '../shell/router.js';

/** Height of a row, the same as in runs.css. */
const ROW_PX = 30;
const OVERSCAN = 6;
/** The narrowest bar, in per cent: a very short attempt must be visible. */
const BAR_MIN = 0.4;

/** The spans of a step: from the journal, or at least its last attempt. @param {string} run @param {import('../shell/api.js').StepView} s @returns {import('./trail.js').Span[]} */
function spansOf(run, s) {
  const known = spans(run, s.id);
  if (known.length > 0 || !s.started_at) return known;
  const to = s.ended_at ? Date.parse(s.ended_at) : s.status === 'RUNNING' ? null : Date.parse(s.started_at);
  return [{ seq: 0, from: Date.parse(s.started_at), to, kind: 'work', outcome: to === null ? '' : s.status, attempt: s.attempts, iteration: s.iteration_count }];
}

/** @param {import('./trail.js').Span} p @param {number} until */
function words(p, until) {
  const round = p.iteration > 0 ? `, iteration ${p.iteration + 1}` : '';
  const what = p.kind === 'wait' ? 'waited for people' : `attempt ${p.attempt}`;
  return `${what}${round}: ${p.to === null ? 'running' : stepLook(p.outcome).label}, ${clock(p.from)}, ${span((p.to ?? until) - p.from)}`;
}

/** @param {{run: string, id: string, index: number, from: number, to: number}} props */
function Row({ run, id, index, from, to }) {
  const s = step(id)?.value;
  void trailed.value;
  if (!s) return null;
  const look = stepLook(s.status);
  const list = spansOf(run, s);
  const wide = Math.max(1, to - from);
  const place = (/** @type {import('./trail.js').Span} */ p) => {
    const left = Math.min(100 - BAR_MIN, Math.max(0, ((p.from - from) / wide) * 100));
    const right = Math.min(100, (((p.to ?? to) - from) / wide) * 100);
    return { left: `${left.toFixed(2)}%`, width: `${Math.max(BAR_MIN, right - left).toFixed(2)}%` };
  };
  const tried = tries(s);
  return html`<li class="time-row ${stepID.value === id ? 'time-row-shown' : ''}" style=${{ transform: `translateY(${index * ROW_PX}px)` }}>
    <button type="button" class="time-name" aria-pressed=${stepID.value === id ? 'true' : 'false'} onClick=${() => showRun(run, stepID.value === id ? '' : id)}>
      <span class="state state-${look.look}"><i aria-hidden="true">${look.mark}</i></span><bdi>${plain(id, 64)}</bdi><span class="hidden">, ${look.label}</span>${tried && html`<span class="soft time-tried">${tried}</span>`}</button>
    <span class="time-bars" role="img" aria-label=${list.length === 0 ? 'nothing yet' : list.slice(-6).map((p) => words(p, to)).join('; ')}>
      ${list.map((p, i) => html`<i key=${i} class="bar bar-${p.kind === 'wait' ? 'wait' : p.to === null ? 'live' : stepLook(p.outcome === 'PENDING' ? 'FAILED' : p.outcome === 'RUNNING' || p.outcome === 'WAITING_ON_HUMAN' ? 'COMPLETED' : p.outcome).look}" style=${place(p)} title=${words(p, to)}>${p.iteration > 0 ? html`<b>${p.iteration + 1}</b>` : ''}</i>`)}
    </span></li>`;
}

/** @param {{run: string}} props */
export function RunTimeline({ run }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const top = useSignal(0);
  const height = useSignal(600);
  useEffect(() => {
    const el = /** @type {HTMLDivElement} */ (box.current);
    const watch = new ResizeObserver(() => { height.value = el.clientHeight; });
    watch.observe(el);
    return () => watch.disconnect();
  }, []);
  const view = shown.value;
  if (!view) return null;
  const ids = stepIDs.value;
  const from = Date.parse(view.created_at);
  const to = Math.max(from + 1000, isOver(view) ? Date.parse(view.updated_at) : seenUntil.value + api.skew.ms);
  const first = Math.max(0, Math.floor(top.value / ROW_PX) - OVERSCAN);
  const last = Math.min(ids.length, Math.ceil((top.value + height.value) / ROW_PX) + OVERSCAN);
  return html`<div class="times">
    <p class="times-head"><span class="num">${moment(from, now.value)}</span><span class="soft">${span(to - from)}</span><span class="num">${isOver(view) ? moment(to, now.value) : 'now'}</span></p>
    <div class="times-scroll" ref=${box} tabIndex=${0} role="region" aria-label="Steps on a line of time" onScroll=${(/** @type {any} */ e) => { top.value = e.currentTarget.scrollTop; }}>
      <ol class="time-rows" style=${{ height: `${ids.length * ROW_PX}px` }}>${ids.slice(first, last).map((id, i) => html`<${Row} key=${id} run=${run} id=${id} index=${first + i} from=${from} to=${to} />`)}</ol>
    </div></div>`;
}
