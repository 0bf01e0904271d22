// The layout of small graphs, in one place as lib.js is for the rest. It is
// loaded when the first graph is drawn.

export { Graph, layout } from '../vendor/dagre.mjs';
