// The list of agents. Only the rows in view are in the page, however many agents there are.

import { skew } from '../shell/api.js';
import { active, concerns } from './words.js';
import { OnHost } from '../hosts/onhost.js';
import { count, span } from '../shell/format.js';
import { html, useEffect, useLayoutEffect, useRef, useSignal } from '../shell/lib.js';
import { live, seenUntil } from '../shell/connection.js';
import { configure } from '../configure/state.js';
import { cell, loaded, names } from './state.js';
import { plain } from '../shell/text.js';
import { choose, chosen, counts, filter, search, shownNames } from '../shell/router.js';
import { Badge, MainOrder, RowLine } from './controls.js';
import { Fairlead, Icon } from '../shell/icons.js';
import { Trace } from '../history/timeline.js';

/** Height of a row, the same as --row in base.css. */
const ROW_PX = 80;
/** Rows drawn beyond the edge, so that scrolling shows no gaps. */
const OVERSCAN = 4;

/** The age of the session; empty between two sessions, with the same width. @param {{since: string}} props */
const Elapsed = ({ since }) => html`<span class="num elapsed">${since && span(seenUntil.value + skew.ms - Date.parse(since))}</span>`;

/** @param {{name: string, index: number, total: number, roving: boolean}} props */
function Row({ name, index, total, roving }) {
  const c = cell(name);
  if (!c) return null;
  const a = c.agent.value;
  const on = active(a);
  const isChosen = chosen.value === name;
  const worries = concerns(a);
  return html`<li class="row ${on ? 'row-on' : ''} ${isChosen ? 'row-chosen' : ''}" aria-setsize=${total} aria-posinset=${index + 1}
    style=${{ transform: `translateY(${index * ROW_PX}px)` }}>
    <div class="row-main">
      <span class="row-head">
        <button type="button" class="row-name" data-index=${index} tabIndex=${roving ? 0 : -1} aria-current=${isChosen ? 'true' : undefined}
          onClick=${() => choose(name)}><bdi>${plain(name, 80)}</bdi></button>
        <${Badge} cell=${c} /><${OnHost} name=${a.session?.host} />
        ${a.wall === 'nothing' && html`<span class="no-wall">no wall</span>`}
        ${worries.length > 0 && html`<span class="look" title=${plain(worries.join('; '), 300)}><${Icon} name="look" /><span class="hidden">needs a look: ${plain(worries[0], 120)}</span></span>`}
      </span>
      <${RowLine} cell=${c} />
      <${Trace} cell=${c} />
    </div>
    <div class="row-side">
      <${MainOrder} cell=${c} tabIndex=${roving ? 0 : -1} />
      ${on && html`<${Elapsed} since=${a.session?.started_at ?? ''} />`}
    </div>
  </li>`;
}

const FILTERS = /** @type {const} */ ([['all', 'All'], ['running', 'Running'], ['idle', 'Idle'], ['look', 'To look at']]);

function Tools() {
  const n = counts.value;
  return html`<div class="roster-tools" role="search">
    <label class="field"><${Icon} name="search" /><span class="hidden">Find an agent</span>
      <input id="search" type="search" placeholder="Find an agent" autocomplete="off" spellcheck=${false} value=${search.value}
        onInput=${(/** @type {any} */ e) => { search.value = e.target.value; }} /></label>
    <button type="button" class="icon-button roster-add" title="Add an agent" aria-label="Add an agent" aria-disabled=${live.value ? undefined : 'true'} onClick=${() => { if (live.value) configure('add'); }}><${Icon} name="plus" /></button>
    <div class="chips" role="group" aria-label="Show">
      ${FILTERS.map(([key, label]) => html`<button type="button" key=${key} class="chip chip-${key}" aria-pressed=${filter.value === key ? 'true' : 'false'}
        onClick=${() => { filter.value = key; }}>${label} <span class="num">${count(n[key])}</span></button>`)}
    </div>
  </div>`;
}

function Empty() {
  if (!loaded.value) return html`<div class="empty"><p>Loading the team\u2026</p></div>`;
  if (names.value.length > 0) {
    return html`<div class="empty"><h2>No match</h2><p>No agent matches the search and the filter.</p>
      <button type="button" class="plain-button" onClick=${() => { search.value = ''; filter.value = 'all'; }}>Show all</button></div>`;
  }
  return html`<${FirstAgent} />`;
}

/** What to do while the team has no agent. */
export const FirstAgent = () => html`<div class="empty first-agent"><${Fairlead} /><h2>No agents yet</h2>
  <p><button type="button" class="order order-primary" aria-disabled=${live.value ? undefined : 'true'} onClick=${() => { if (live.value) configure('add'); }}><${Icon} name="plus" /><span>Add an agent</span></button></p>
  <p>Or name it in <code>fairlead.yaml</code> at the root of the repository, and say <code>fairlead reload</code>.</p>
  <pre class="sample">agents:
  coder:
    driver: exec
    command: [python3, agent.py]</pre></div>`;

export function Roster() {
  const scroller = useRef(/** @type {HTMLDivElement | null} */ (null));
  const top = useSignal(0);
  const height = useSignal(800);
  const list = shownNames.value;
  const at = list.indexOf(chosen.value);

  useEffect(() => {
    const el = /** @type {HTMLDivElement} */ (scroller.current);
    const watch = new ResizeObserver(() => { height.value = el.clientHeight; });
    watch.observe(el);
    return () => watch.disconnect();
  }, []);

  // Scrolls the selected row into view; if the list has the focus, the focus follows.
  useLayoutEffect(() => {
    const el = scroller.current;
    if (!el || at < 0) return;
    const y = at * ROW_PX;
    if (y < el.scrollTop) el.scrollTop = y;
    else if (y + ROW_PX > el.scrollTop + el.clientHeight) el.scrollTop = y + ROW_PX - el.clientHeight;
    const active = document.activeElement;
    if (active instanceof HTMLElement && active.classList.contains('row-name') && active.dataset.index !== String(at)) {
      /** @type {HTMLElement | null} */ (el.querySelector(`.row-name[data-index="${at}"]`))?.focus({ preventScroll: true });
    }
  }, [at, chosen.value]);

  const first = Math.max(0, Math.floor(top.value / ROW_PX) - OVERSCAN);
  const last = Math.min(list.length, Math.ceil((top.value + height.value) / ROW_PX) + OVERSCAN);
  const drawn = [];
  for (let i = first; i < last; i++) drawn.push(i);
  if (at >= 0 && (at < first || at >= last)) drawn.push(at); // it may have the focus
  const rover = at >= 0 ? at : first;

  return html`<nav class="roster" aria-label="Team">
    <${Tools} />
    <div class="roster-scroll" ref=${scroller} onScroll=${(/** @type {any} */ e) => { top.value = e.currentTarget.scrollTop; }}>
      ${list.length === 0 ? html`<${Empty} />` : html`<ul class="rows" aria-label="Agents" style=${{ height: `${list.length * ROW_PX}px` }}>
        ${drawn.map((i) => html`<${Row} key=${list[i]} name=${list[i]} index=${i} total=${list.length} roving=${i === rover} />`)}
      </ul>`}
    </div>
  </nav>`;
}
