// The types of uplot.js, as far as they are used. Read by the type check alone.
export declare class UPlot {
  constructor(options: object, data: (number | null)[][], target: HTMLElement);
  setSize(size: { width: number; height: number }): void;
  destroy(): void;
  static paths: { bars(options: object): unknown };
}
