// Sessions on a time axis: small in a row, large above an agent's tabs.

import { outcomeOf } from '../agents/words.js';
import { clock, shortClock, span } from '../shell/format.js';
import { computed, html, useSignal } from '../shell/lib.js';
import { seenUntil } from '../shell/connection.js';
import { oldest, RUNS_MAX } from '../agents/state.js';
import { plain } from '../shell/text.js';
import { showSession } from '../shell/router.js';

/** @typedef {import('../agents/state.js').Cell} Cell */
/** @typedef {import('../agents/state.js').Run} Run */

const HOUR = 3_600_000;
/** The narrowest bar, in per cent: a session of one second must be visible. */
const BAR_MIN = 0.35;
/** In the small timeline time moves in steps, so that a thousand rows do not redraw each second. */
const SMALL_STEP_MS = 15_000;
const smallEnd = computed(() => Math.ceil(seenUntil.value / SMALL_STEP_MS) * SMALL_STEP_MS);

/** @param {Run} r @param {number} from @param {number} to */
function place(r, from, to) {
  const width = to - from;
  const left = Math.max(0, ((r.from - from) / width) * 100);
  const right = Math.min(100, (((r.to ?? to) - from) / width) * 100);
  return { left: `${Math.min(left, 100 - BAR_MIN).toFixed(2)}%`, width: `${Math.max(BAR_MIN, right - left).toFixed(2)}%` };
}

/** The last hour of one agent, for its row; less if the team is younger. @param {{cell: Cell}} props */
export function Trace({ cell: c }) {
  const to = smallEnd.value;
  const from = to - (to - oldest.value < HOUR / 6 ? HOUR / 6 : HOUR);
  const runs = c.runs.value.filter((r) => (r.to ?? to) > from);
  return html`<span class="trace" aria-hidden="true">${runs.map((r) => html`
    <i key=${r.id} class="run run-${r.to === null ? 'live' : outcomeOf(r.outcome).look}" style=${place(r, from, to)}></i>`)}</span>`;
}

/** @type {Record<string, {ms: number, step: number}>} */
const RANGES = {
  '15m': { ms: HOUR / 4, step: HOUR / 20 },
  '1h': { ms: HOUR, step: HOUR / 6 },
  '6h': { ms: 6 * HOUR, step: HOUR },
  '24h': { ms: 24 * HOUR, step: 4 * HOUR },
};

/** @param {Run} r @param {number} nowMs */
export function runWords(r, nowMs) {
  const end = r.to ?? nowMs;
  return `${plain(r.id, 60)}${r.kind === 'cleanup' ? ', cleanup' : ''}: ${r.to === null ? 'running' : outcomeOf(r.outcome).label}, ${clock(r.from)}, ${span(end - r.from)}`;
}

/** The selected agent's sessions, with an axis. @param {{cell: Cell}} props */
export function Timeline({ cell: c }) {
  const wanted = useSignal('');
  const range = wanted.value || (seenUntil.value - oldest.value < HOUR / 4 ? '15m' : '1h');
  const { ms, step } = RANGES[range];
  const to = seenUntil.value;
  const from = to - ms;
  const runs = c.runs.value.filter((r) => (r.to ?? to) > from);
  const cut = c.runs.value.length >= RUNS_MAX && c.runs.value[0].from > from; // older ones are not kept
  const ticks = [];
  for (let t = Math.ceil(from / step) * step; t < to; t += step) ticks.push(t);
  const marks = c.trail.value.filter((ch) => ch.entity.startsWith('control/') && Date.parse(ch.time) > from && (ch.from !== ch.to || ch.actor?.kind === 'human'));
  return html`<figure class="timeline">
    <figcaption class="timeline-head">
      <span class="label">Sessions</span>
      <span class="timeline-sum">${runs.length === 0 ? 'none in this time' : summary(runs)}${cut && html`<span class="soft">; only the newest ${RUNS_MAX} are shown, older ones are in History</span>`}</span>
      <span class="seg" role="group" aria-label="Time shown">${Object.keys(RANGES).map((k) => html`
        <button type="button" key=${k} aria-pressed=${range === k ? 'true' : 'false'} onClick=${() => { wanted.value = k; }}>${k}</button>`)}</span>
    </figcaption>
    <div class="axis" role="img" aria-label="Sessions of the last ${range}: ${runs.length === 0 ? 'none' : summary(runs)}">
      ${ticks.map((t) => html`<span key=${t} class="tick" style=${{ left: `${(((t - from) / ms) * 100).toFixed(3)}%` }}>${t < to - ms * 0.06 && html`<b>${shortClock(t)}</b>`}</span>`)}
      ${runs.map((r) => html`<span key=${r.id} class="run run-${r.to === null ? 'live' : outcomeOf(r.outcome).look} ${r.kind === 'cleanup' ? 'run-cleanup' : ''}"
        style=${place(r, from, to)} title=${runWords(r, to)} onClick=${() => showSession(r.id)}></span>`)}
      ${marks.map((ch) => html`<span key=${ch.seq} class="notch" style=${{ left: `${(((Date.parse(ch.time) - from) / ms) * 100).toFixed(3)}%` }}
        title="${plain(ch.row, 12)} ${plain(ch.from, 30)} \u2192 ${plain(ch.to, 30)}, ${plain(ch.trigger, 60)}, ${clock(Date.parse(ch.time))}"></span>`)}
    </div>
  </figure>`;
}

/** @param {Run[]} runs */
function summary(runs) {
  /** @type {Map<string, number>} */
  const tally = new Map();
  for (const r of runs) {
    const word = r.to === null ? 'running' : outcomeOf(r.outcome).label;
    tally.set(word, (tally.get(word) ?? 0) + 1);
  }
  return [...tally].map(([word, n]) => `${n} ${plain(word, 20)}`).join(', ');
}
