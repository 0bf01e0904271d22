// The positions of a run's steps in its graph. Pure, but for the loading of the library.
//
// The library lays out small graphs. A large graph is put into layers in one pass, because a
// thousand steps must not stop the page.

/** @typedef {{id: string, needs: string[], loop: string}} Node loop: where a gate leads back to, or empty */
/** @typedef {{x: number, y: number}} Point */
/** @typedef {{from: string, to: string, points: Point[], box: [number, number, number, number]}} Edge */
/** @typedef {{places: Map<string, Point>, edges: Edge[], loops: Edge[], width: number, height: number}} Drawing places are left upper corners */

/** Size of a step in the graph, in pixels; the same as in runs.css. */
export const NODE = { width: 168, height: 52 };
const GAP = { along: 44, across: 18 };
const MARGIN = 16;
/** Steps up to which the library is fast enough. */
const CAREFUL_MAX = 120;
/** Distance of a loop-back edge from the steps that it passes, in pixels. */
const SWING = 26;

/** Everything that the layout depends on; the same key means the same layout. @param {Node[]} nodes @param {boolean} down */
export const shapeOf = (nodes, down) => `${down}\n${nodes.map((n) => `${n.id}<${n.needs.join(',')}>${n.loop}`).join('\n')}`;

/** @param {Node[]} nodes @param {boolean} down from top to bottom, for narrow windows @returns {Promise<Drawing>} */
export async function draw(nodes, down) {
  const known = new Set(nodes.map((n) => n.id));
  const drawing = nodes.length <= CAREFUL_MAX ? await careful(nodes, known, down) : layered(nodes, known, down);
  nodes.forEach((n) => {
    if (!n.loop || !known.has(n.loop)) return;
    drawing.loops.push(loopBack(n.id, n.loop, drawing.places, down));
  });
  for (const e of [...drawing.edges, ...drawing.loops]) {
    drawing.width = Math.max(drawing.width, e.box[2]);
    drawing.height = Math.max(drawing.height, e.box[3]);
  }
  drawing.width += MARGIN;
  drawing.height += MARGIN;
  return drawing;
}

/** @param {Node[]} nodes @param {Set<string>} known @param {boolean} down @returns {Promise<Drawing>} */
async function careful(nodes, known, down) {
  const { Graph, layout } = await import('./dagre.js');
  const g = new Graph();
  g.setGraph({ rankdir: down ? 'TB' : 'LR', nodesep: GAP.across, ranksep: GAP.along, marginx: MARGIN, marginy: MARGIN });
  g.setDefaultEdgeLabel(() => ({}));
  for (const n of nodes) g.setNode(n.id, { ...NODE });
  for (const n of nodes) for (const need of n.needs) if (known.has(need)) g.setEdge(need, n.id);
  layout(g);
  /** @type {Drawing} */
  const drawing = { places: new Map(), edges: [], loops: [], width: 0, height: 0 };
  for (const n of nodes) {
    const at = g.node(n.id);
    put(drawing, n.id, at.x - NODE.width / 2, at.y - NODE.height / 2);
  }
  for (const n of nodes) for (const need of n.needs) if (known.has(need)) drawing.edges.push(edge(need, n.id, g.edge(need, n.id).points));
  return drawing;
}

/** A step's layer follows the last layer of its needs. @param {Node[]} nodes @param {Set<string>} known @param {boolean} down @returns {Drawing} */
function layered(nodes, known, down) {
  const layers = layersOf(nodes, known);
  /** @type {Drawing} */
  const drawing = { places: new Map(), edges: [], loops: [], width: 0, height: 0 };
  /** @type {number[]} */
  const used = []; // steps in each layer
  for (const n of nodes) {
    const layer = layers.get(n.id) ?? 0;
    const across = used[layer] ?? 0;
    used[layer] = across + 1;
    if (down) put(drawing, n.id, MARGIN + across * (NODE.width + GAP.across), MARGIN + layer * (NODE.height + GAP.along));
    else put(drawing, n.id, MARGIN + layer * (NODE.width + GAP.along), MARGIN + across * (NODE.height + GAP.across));
  }
  for (const n of nodes) {
    const to = /** @type {Point} */ (drawing.places.get(n.id));
    for (const need of n.needs) {
      const from = drawing.places.get(need);
      if (from) drawing.edges.push(edge(need, n.id, [leaving(from, down), entering(to, down)]));
    }
  }
  return drawing;
}

/** @param {Node[]} nodes @param {Set<string>} known */
function layersOf(nodes, known) {
  /** @type {Map<string, number>} */
  const layers = new Map();
  /** @type {Map<string, string[]>} */
  const then = new Map();
  /** @type {Map<string, number>} */
  const missing = new Map();
  let ready = [];
  for (const n of nodes) {
    const needs = n.needs.filter((id) => known.has(id));
    missing.set(n.id, needs.length);
    for (const need of needs) then.set(need, [...(then.get(need) ?? []), n.id]);
    if (needs.length === 0) { layers.set(n.id, 0); ready.push(n.id); }
  }
  while (ready.length > 0) {
    const next = [];
    for (const id of ready) {
      for (const after of then.get(id) ?? []) {
        layers.set(after, Math.max(layers.get(after) ?? 0, (layers.get(id) ?? 0) + 1));
        const left = (missing.get(after) ?? 0) - 1;
        missing.set(after, left);
        if (left === 0) next.push(after);
      }
    }
    ready = next;
  }
  return layers; // steps whose needs form a cycle stay in the first layer
}

/** @param {Drawing} d @param {string} id @param {number} x @param {number} y */
function put(d, id, x, y) {
  d.places.set(id, { x, y });
  d.width = Math.max(d.width, x + NODE.width);
  d.height = Math.max(d.height, y + NODE.height);
}

/** @param {Point} p @param {boolean} down */
const leaving = (p, down) => (down ? { x: p.x + NODE.width / 2, y: p.y + NODE.height } : { x: p.x + NODE.width, y: p.y + NODE.height / 2 });
/** @param {Point} p @param {boolean} down */
const entering = (p, down) => (down ? { x: p.x + NODE.width / 2, y: p.y } : { x: p.x, y: p.y + NODE.height / 2 });

/** @param {string} from @param {string} to @param {Point[]} points @returns {Edge} */
function edge(from, to, points) {
  const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
  return { from, to, points, box: [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)] };
}

/** A curve from a gate back to its target, around the steps between. @param {string} from @param {string} to @param {Map<string, Point>} places @param {boolean} down */
function loopBack(from, to, places, down) {
  const a = /** @type {Point} */ (places.get(from));
  const b = /** @type {Point} */ (places.get(to));
  const size = down ? NODE.width : NODE.height;
  const along = (/** @type {Point} */ p) => (down ? p.y : p.x);
  const outer = (/** @type {Point} */ p) => (down ? p.x : p.y) + size;
  const [first, last] = [Math.min(along(a), along(b)), Math.max(along(a), along(b))];
  let edgeOf = 0;
  for (const p of places.values()) if (along(p) >= first && along(p) <= last) edgeOf = Math.max(edgeOf, outer(p));
  // A cubic curve reaches three quarters of the distance to its control points.
  const out = (edgeOf + SWING - (outer(a) + outer(b)) / 8) / 0.75;
  const at = (/** @type {number} */ x, /** @type {number} */ y) => (down ? { x: y, y: x } : { x, y });
  const [ma, mb] = [a, b].map((p) => along(p) + (down ? NODE.height : NODE.width) / 2);
  return edge(from, to, [at(ma, outer(a)), at(ma, out), at(mb, out), at(mb, outer(b))]);
}

/** The middle of a curve, the place of its label. @param {Point[]} points of a loop-back @returns {Point} */
export function middle(points) {
  const [a, b, c, d] = points;
  return { x: (a.x + 3 * b.x + 3 * c.x + d.x) / 8, y: (a.y + 3 * b.y + 3 * c.y + d.y) / 8 };
}

/** An edge as an SVG path: straight between the ends, with round corners on the way. @param {Point[]} points @param {boolean} curved */
export function pathOf(points, curved) {
  const [first, ...rest] = points;
  if (curved && rest.length === 3) return `M${first.x} ${first.y} C${rest.map((p) => `${p.x} ${p.y}`).join(' ')}`;
  let d = `M${first.x} ${first.y}`;
  for (let i = 0; i < rest.length; i++) {
    const p = rest[i], next = rest[i + 1];
    d += next ? ` Q${p.x} ${p.y} ${(p.x + next.x) / 2} ${(p.y + next.y) / 2}` : ` L${p.x} ${p.y}`;
  }
  return d;
}
