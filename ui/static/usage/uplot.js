// The chart library, loaded with the first chart.

export { default as UPlot } from '../vendor/uplot.mjs';
