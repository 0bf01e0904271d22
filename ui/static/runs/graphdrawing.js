// A run as a graph: steps, needs and loop-backs. Of a large graph only the part in view is in
// the page.

import { elsewhere } from '../hosts/state.js';
import { html, useEffect, useLayoutEffect, useMemo, useRef, useSignal } from '../shell/lib.js';
import { NODE, draw, middle, pathOf, shapeOf } from './graph.js';
import { step, stepIDs, topology } from './state.js';
import { stepLook, tries } from './words.js';
import { plain } from '../shell/text.js';
import { showRun, stepID } from '../shell/router.js';

/** @typedef {import('./graph.js').Drawing} Drawing */

/** Margin around the view in which steps are drawn, in pixels. */
const BEYOND = 480;
/** Scrolling changes the drawn part in steps of this many pixels. */
const STEP_PX = 120;
/** Below this width the graph runs from top to bottom. */
const NARROW_PX = 620;

/** @param {{run: string, id: string, at: import('./graph.js').Point, roving: boolean}} props */
function Step({ run, id, at, roving }) {
  const s = step(id)?.value;
  if (!s) return null;
  const look = stepLook(s.status);
  const words = tries(s), host = elsewhere(s.host);
  const isShown = stepID.value === id;
  return html`<button type="button" class="node node-${look.look} ${isShown ? 'node-shown' : ''}" data-step=${id} tabIndex=${roving ? 0 : -1} aria-pressed=${isShown ? 'true' : 'false'}
    style=${{ transform: `translate(${at.x}px, ${at.y}px)` }} onClick=${() => showRun(run, isShown ? '' : id)}>
    <span class="node-name"><i aria-hidden="true">${look.mark}</i><bdi>${plain(id, 64)}</bdi></span>
    <span class="node-line">${look.label}${words && `, ${words}`}${host && `, on ${plain(host, 63)}`}</span></button>`;
}

/** A loop-back edge with the number of its iterations. @param {{edge: import('./graph.js').Edge}} props */
function LoopCount({ edge: e }) {
  const s = step(e.from)?.value;
  const n = s?.iteration_count ?? 0;
  const at = middle(e.points);
  return html`<span class="loop-count ${n > 0 ? 'loop-taken' : ''}" style=${{ transform: `translate(${at.x}px, ${at.y}px)` }}
    title="${plain(e.from, 64)} leads back to ${plain(e.to, 64)}"><span aria-hidden="true">\u21ba\u2009</span>${n}<span class="hidden"> times from ${plain(e.from, 64)} back to ${plain(e.to, 64)}</span></span>`;
}

/** @param {{drawing: Drawing, seen: number[]}} props */
function Lines({ drawing, seen }) {
  const inSight = (/** @type {import('./graph.js').Edge} */ e) => e.box[2] >= seen[0] && e.box[0] <= seen[2] && e.box[3] >= seen[1] && e.box[1] <= seen[3];
  return html`<svg class="lines" width=${drawing.width} height=${drawing.height} aria-hidden="true" focusable="false">
    <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0.5 0.5 L7.5 4 L0.5 7.5 Z" class="tip" /></marker>
      <marker id="tip-back" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0.5 0.5 L7.5 4 L0.5 7.5 Z" class="tip-back" /></marker></defs>
    ${drawing.edges.filter(inSight).map((e) => html`<path key=${`${e.from} ${e.to}`} class="need" d=${pathOf(e.points, false)} marker-end="url(#tip)" />`)}
    ${drawing.loops.filter(inSight).map((e) => html`<path key=${`${e.from} ${e.to}`} class="loop" d=${pathOf(e.points, true)} marker-end="url(#tip-back)" />`)}
  </svg>`;
}

/** The step that an arrow key leads to: the nearest one in that direction. @param {Drawing} d @param {string} from @param {string} key */
function beside(d, from, key) {
  const a = d.places.get(from);
  if (!a) return '';
  const dirs = /** @type {Record<string, [number, number]>} */ ({ ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] });
  const dir = dirs[key];
  if (!dir) return '';
  let best = '', least = Infinity;
  for (const [id, p] of d.places) {
    const along = (p.x - a.x) * dir[0] + (p.y - a.y) * dir[1];
    const aside = Math.abs((p.x - a.x) * dir[1]) + Math.abs((p.y - a.y) * dir[0]);
    if (along < 8) continue;
    const far = along + aside * 2;
    if (far < least) { least = far; best = id; }
  }
  return best;
}

/** @param {{run: string}} props */
export function RunGraph({ run }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const drawing = useSignal(/** @type {Drawing | null} */ (null));
  const down = useSignal(false);
  const seen = useSignal([0, 0, 1600, 1200]);
  const rover = useSignal('');
  const focusNext = useRef(false);
  const ids = stepIDs.value;
  const nodes = useMemo(() => ids.map((id) => {
    const s = step(id)?.peek();
    return { id, needs: s?.needs ?? [], loop: s?.loop_back_to ?? '' };
  }), [topology.value]);
  const shape = useMemo(() => shapeOf(nodes, down.value), [nodes, down.value]);

  const look = () => {
    const el = box.current;
    if (!el) return;
    if (el.clientWidth > 0) down.value = el.clientWidth < NARROW_PX;
    const x = Math.floor(el.scrollLeft / STEP_PX) * STEP_PX, y = Math.floor(el.scrollTop / STEP_PX) * STEP_PX;
    const next = [x - BEYOND, y - BEYOND, x + el.clientWidth + BEYOND + STEP_PX, y + el.clientHeight + BEYOND + STEP_PX];
    if (next.some((v, i) => v !== seen.peek()[i])) seen.value = next;
  };
  useLayoutEffect(look, []); // sets the direction before the first drawing
  useEffect(() => {
    const watch = new ResizeObserver(look);
    watch.observe(/** @type {HTMLElement} */ (box.current));
    return () => watch.disconnect();
  }, []);
  useEffect(() => {
    let gone = false;
    void draw(nodes, down.peek()).then((d) => { if (!gone) drawing.value = d; });
    return () => { gone = true; };
  }, [shape]);

  const d = drawing.value;
  const chosen = d?.places.has(stepID.value) ? stepID.value : d?.places.has(rover.value) ? rover.value : ids[0] ?? '';
  const toSight = (/** @type {string} */ id) => {
    const el = box.current, at = d?.places.get(id);
    if (!el || !at) return;
    if (at.x < el.scrollLeft || at.x + NODE.width > el.scrollLeft + el.clientWidth) el.scrollLeft = at.x - (el.clientWidth - NODE.width) / 2;
    if (at.y < el.scrollTop || at.y + NODE.height > el.scrollTop + el.clientHeight) el.scrollTop = at.y - (el.clientHeight - NODE.height) / 2;
    look();
  };
  useLayoutEffect(() => { if (stepID.value) toSight(stepID.value); }, [stepID.value, d]);
  useLayoutEffect(() => {
    if (!focusNext.current) return;
    focusNext.current = false;
    /** @type {HTMLElement | null | undefined} */ (box.current?.querySelector(`[data-step="${CSS.escape(rover.value)}"]`))?.focus({ preventScroll: true });
  });
  const onKeyDown = (/** @type {KeyboardEvent} */ e) => {
    if (!d || !(e.target instanceof HTMLElement) || !e.target.dataset.step) return;
    const to = e.key === 'Home' ? ids[0] : e.key === 'End' ? ids[ids.length - 1] : beside(d, e.target.dataset.step, e.key);
    if (!to) return;
    e.preventDefault();
    focusNext.current = true;
    toSight(to);
    if (stepID.value) showRun(run, to);
    rover.value = to;
  };
  const s = seen.value;
  const drawn = d ? ids.filter((id) => {
    const p = d.places.get(id);
    return p && (id === chosen || id === rover.value || (p.x + NODE.width >= s[0] && p.x <= s[2] && p.y + NODE.height >= s[1] && p.y <= s[3]));
  }) : [];
  const focusable = rover.value && drawn.includes(rover.value) ? rover.value : chosen;
  return html`<div class="graph" ref=${box} onScroll=${look} onKeyDown=${onKeyDown} role="group" aria-label="Steps, and what they need. Arrow keys walk">
    ${d ? html`<div class="graph-sheet" style=${{ width: `${d.width}px`, height: `${d.height}px` }}>
      <${Lines} drawing=${d} seen=${s} />
      ${drawn.map((id) => html`<${Step} key=${id} run=${run} id=${id} at=${d.places.get(id)} roving=${id === focusable} />`)}
      ${d.loops.map((e) => html`<${LoopCount} key=${`${e.from} ${e.to}`} edge=${e} />`)}
    </div>` : ''}
  </div>`;
}
