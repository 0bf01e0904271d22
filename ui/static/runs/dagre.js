// The layout library for small graphs, loaded with the first graph.

export { Graph, layout } from '../vendor/dagre.mjs';
