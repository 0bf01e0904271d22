// The icons of the page.

import { html } from './lib.js';

/** The logo: a fairlead, a ring that guides lines. */
export const Fairlead = () => html`
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
    <g fill="none" stroke-linecap="round" stroke-width="2">
      <path class="mark-ring" d="M18 4 A6.5 12 0 0 0 18 28" stroke-width="3" />
      <path class="mark-line" d="M1.5 4.5 C8 4.5 9 11.5 16 11.5 H30.5" />
      <path class="mark-line" d="M1.5 16 H30.5" />
      <path class="mark-line" d="M1.5 27.5 C8 27.5 9 20.5 16 20.5 H30.5" />
      <path class="mark-ring" d="M18 4 A6.5 12 0 0 1 18 28" stroke-width="3" />
    </g>
  </svg>`;

/** @type {Record<string, string>} */
const PATHS = {
  play: 'M5 3.5 L12.5 8 L5 12.5 Z',
  stop: 'M4 4 H12 V12 H4 Z',
  once: 'M4 3.5 L10 8 L4 12.5 Z M12 3.5 V12.5',
  broom: 'M13 3 L8 8 M5.5 7 L9 10.5 C8 12.5 6 13.5 3 13.5 C3 10.5 3.5 8 5.5 7 Z',
  hold: 'M5.5 3.5 V12.5 M10.5 3.5 V12.5',
  back: 'M10 3.5 L5.5 8 L10 12.5',
  forward: 'M6 3.5 L10.5 8 L6 12.5',
  look: 'M8 2.5 L14 13 H2 Z M8 6.5 V9.5 M8 11.2 V11.4',
  search: 'M7 3 A4 4 0 1 1 7 11 A4 4 0 1 1 7 3 M10 10 L13.5 13.5',
  spark: 'M8 2 Q8.6 7.4 14 8 Q8.6 8.6 8 14 Q7.4 8.6 2 8 Q7.4 7.4 8 2 Z',
  sun: 'M8 5.2 A2.8 2.8 0 1 1 8 10.8 A2.8 2.8 0 1 1 8 5.2 M8 1.5 V2.6 M8 13.4 V14.5 M1.5 8 H2.6 M13.4 8 H14.5 M3.4 3.4 L4.2 4.2 M11.8 11.8 L12.6 12.6 M3.4 12.6 L4.2 11.8 M11.8 4.2 L12.6 3.4',
  moon: 'M12.8 9.8 A5.6 5.6 0 1 1 6.2 3.2 A4.6 4.6 0 0 0 12.8 9.8 Z',
  auto: 'M8 2.5 A5.5 5.5 0 1 1 8 13.5 A5.5 5.5 0 1 1 8 2.5 M8 2.5 V13.5 M8 5 H11.5 M8 8 H13 M8 11 H11.5',
  close: 'M4 4 L12 12 M12 4 L4 12',
  down: 'M8 3 V12.5 M4 8.5 L8 12.5 L12 8.5',
  save: 'M8 2.5 V10 M5 7.2 L8 10.2 L11 7.2 M3 13 H13',
  send: 'M2.5 8 L13.5 3 L10.5 13 L7.5 9.5 Z M7.5 9.5 L13.5 3',
  clock: 'M8 2.5 A5.5 5.5 0 1 1 8 13.5 A5.5 5.5 0 1 1 8 2.5 M8 5 V8 L10 9.5',
  check: 'M3.5 8.5 L6.5 11.5 L12.5 4.5',
  plus: 'M8 3 V13 M3 8 H13',
  open: 'M4 6 L8 10.5 L12 6',
  shut: 'M6 4 L10.5 8 L6 12',
  pen: 'M3 13 L3.6 10.2 L10.8 3 L13 5.2 L5.8 12.4 Z',
  comment: 'M3 3.5 H13 V11 H8 L5 13.5 V11 H3 Z',
  'place-now': 'M9 1.5 L3.5 9 H7.5 L7 14.5 L12.5 7 H8.5 Z',
  'place-agents': 'M4.5 5.5 H11.5 A1.5 1.5 0 0 1 13 7 V11.5 A1.5 1.5 0 0 1 11.5 13 H4.5 A1.5 1.5 0 0 1 3 11.5 V7 A1.5 1.5 0 0 1 4.5 5.5 Z M8 5.5 V3 M6 8.8 V9.2 M10 8.8 V9.2',
  'place-tasks': 'M2.5 3 H6 V13 H2.5 Z M10 3 H13.5 V9 H10 Z M6 3 H10 M6 8 H10',
  'place-crew': 'M6 3 A2.3 2.3 0 1 1 6 7.6 A2.3 2.3 0 1 1 6 3 M1.8 13 C1.8 10.4 3.6 9.4 6 9.4 C8.4 9.4 10.2 10.4 10.2 13 M10.4 3.4 A2.1 2.1 0 0 1 10.4 7.2 M11.6 9.6 C13.4 10 14.3 11.2 14.3 13',
  'place-runs': 'M3.5 2.5 A1.6 1.6 0 1 1 3.5 5.7 A1.6 1.6 0 1 1 3.5 2.5 M12.5 10.3 A1.6 1.6 0 1 1 12.5 13.5 A1.6 1.6 0 1 1 12.5 10.3 M5.2 4.1 H9 A2 2 0 0 1 9 8 H7 A2 2 0 0 0 7 11.9 H10.8',
  'place-channels': 'M3 3 H10 V8.5 H6.5 L4.5 10.5 V8.5 H3 Z M12 6 H13.5 V11 H12 V13 L10 11 H7.5',
  'place-dispatch': 'M2.5 8 L13.5 3 L10.5 13 L7.5 9.5 Z M7.5 9.5 L13.5 3',
  'place-inbox': 'M4 3 H12 L14 9 V13 H2 V9 Z M2 9 H5.5 L6.5 11 H9.5 L10.5 9 H14',
  'place-history': 'M3 4 H3.6 M6 4 H13.5 M3 8 H3.6 M6 8 H13.5 M3 12 H3.6 M6 12 H13.5',
  'place-usage': 'M2.5 13.5 H13.5 M4.5 11 V8 M8 11 V3.5 M11.5 11 V6',
  'place-hosts': 'M2.5 3 H13.5 V7 H2.5 Z M2.5 9 H13.5 V13 H2.5 Z M5 5 H5.4 M5 11 H5.4',
  cross: 'M4.5 4.5 L11.5 11.5 M11.5 4.5 L4.5 11.5',
};

/** @param {{name: string}} props */
export const Icon = ({ name }) => html`
  <svg class="icon icon-${name}" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
    <path d=${PATHS[name]} fill="none" stroke="currentColor" stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round" />
  </svg>`;
