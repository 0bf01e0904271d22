// A chart of the days: one bar a day. The table below it has the same figures, so the chart is a picture for those who
// see it, with one sentence for those who do not.

import { money, tokens } from '../shell/format.js';
import { html, useEffect, useRef, useSignal } from '../shell/lib.js';
import { theme, systemDark } from '../shell/prefs.js';

/** @typedef {import('../shell/api.js').UsageRow} UsageRow */
/** @typedef {'cost' | 'tokens'} Measure */

const HEIGHT = 200;
const DAYS_MAX = 31;
const DAY_S = 86_400;

/** The days, oldest first and without gaps, with the sum of all agents; pure. @param {UsageRow[]} rows @param {Measure} measure @returns {[number[], number[]]} seconds and values */
export function series(rows, measure) {
  /** @type {Map<number, number>} */
  const sums = new Map();
  for (const r of rows) {
    const at = Date.parse(`${r.day}T00:00:00Z`) / 1000;
    if (!Number.isFinite(at)) continue;
    const value = measure === 'cost' ? r.cost_usd ?? 0 : (r.input_tokens ?? 0) + (r.output_tokens ?? 0);
    sums.set(at, (sums.get(at) ?? 0) + value);
  }
  if (sums.size === 0) return [[], []];
  const last = Math.max(...sums.keys()), first = Math.max(Math.min(...sums.keys()), last - (DAYS_MAX - 1) * DAY_S);
  const days = [], values = [];
  for (let at = first; at <= last; at += DAY_S) { days.push(at); values.push(sums.get(at) ?? 0); }
  return [days, values];
}

const colour = (/** @type {string} */ name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dayWords = (/** @type {number} */ at) => new Date(at * 1000).toISOString().slice(5, 10);

/** @param {{rows: UsageRow[]}} props */
export function DayChart({ rows }) {
  const costs = rows.some((r) => (r.cost_usd ?? 0) > 0);
  const chosen = useSignal(/** @type {Measure | ''} */ ('')); // by a person; until then cost as soon as one is known
  /** @type {Measure} */
  const measure = costs ? chosen.value || 'cost' : 'tokens';
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const [days, values] = series(rows, measure);
  const words = measure === 'cost' ? money : tokens;
  const key = `${days.join()} ${values.join()} ${theme.value} ${systemDark.value}`;
  useEffect(() => {
    let gone = false, end = () => {};
    void import('./uplot.js').then(({ UPlot }) => {
      const el = box.current;
      if (gone || !el) return;
      const axis = { stroke: colour('--soft'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '12px sans-serif' };
      const plot = new UPlot({
        width: el.clientWidth, height: HEIGHT, legend: { show: false }, cursor: { show: false }, padding: [12, 12, 0, 0],
        scales: { x: { time: false, range: () => [days[0] - DAY_S / 2, days[days.length - 1] + DAY_S / 2] }, y: { range: (/** @type {any} */ _, /** @type {number} */ _min, /** @type {number} */ max) => [0, max > 0 ? max * 1.1 : 1] } },
        axes: [{ ...axis, grid: { show: false }, incrs: [1, 2, 5, 7, 10, 14].map((n) => n * DAY_S), values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map(dayWords) },
          { ...axis, size: 64, values: (/** @type {any} */ _, /** @type {number[]} */ v) => v.map((n) => words(n)) }],
        series: [{}, { fill: colour('--tide'), stroke: colour('--tide'), width: 0, points: { show: false }, paths: UPlot.paths.bars({ size: [0.7, 60] }) }],
      }, [days, values], el);
      const watch = new ResizeObserver(() => plot.setSize({ width: el.clientWidth, height: HEIGHT }));
      watch.observe(el);
      end = () => { watch.disconnect(); plot.destroy(); };
    });
    return () => { gone = true; end(); };
  }, [key]);
  if (days.length === 0) return null;
  const most = values.indexOf(Math.max(...values));
  const what = measure === 'cost' ? 'Cost' : 'Tokens';
  return html`<div class="usage-part"><div class="usage-chart-head"><h3 id="usage-chart">${what} by day</h3>
      ${costs && html`<button type="button" class="plain-button" onClick=${() => { chosen.value = measure === 'cost' ? 'tokens' : 'cost'; }}>Show ${measure === 'cost' ? 'tokens' : 'cost'}</button>`}</div>
    <div class="usage-chart" ref=${box} role="img" aria-label="${what} of the last ${days.length} days; the most was ${words(values[most])} on ${dayWords(days[most])}. The table by day has all figures."></div></div>`;
}
