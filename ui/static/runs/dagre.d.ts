// The types of dagre.js, as far as they are used. Read by the type check alone.
export declare class Graph {
  setGraph(options: object): void;
  setDefaultEdgeLabel(label: () => object): void;
  setNode(id: string, label: object): void;
  setEdge(from: string, to: string): void;
  node(id: string): { x: number; y: number };
  edge(from: string, to: string): { points: { x: number; y: number }[] };
}
export declare function layout(graph: Graph): void;
