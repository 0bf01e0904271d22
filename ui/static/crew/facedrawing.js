// Draws a face from a document, an egg for a member that is hatching, and the lead.

import { colorOf, cutOf, eyesOf, mouthOf, paletteOf } from './face.js';
import { html, useMemo } from '../shell/lib.js';

/** @typedef {import('./face.js').Palette} Palette */

/** The position of the eyes. */
const LEFT = 38, RIGHT = 58, EYES_Y = 48, MOUTH_Y = 61;

/** @param {Palette} p @param {string} d @param {number} [width] */
const stroke = (p, d, width = 2.4) => html`<path d=${d} fill="none" stroke=${p.ink} stroke-width=${width} stroke-linecap="round" stroke-linejoin="round" />`;

/** @param {Palette} p @param {number} rx @param {number} ry @param {number} [glint] radius */
const pupil = (p, rx, ry, glint = 1.2) => html`<ellipse rx=${rx} ry=${ry} fill=${p.ink} />${glint > 0 && html`<circle cx=${rx * 0.32} cy=${-ry * 0.38} r=${glint} fill=${p.glint} />`}`;

/** @param {Palette} p @param {number} r @param {number} inner */
const white = (p, r, inner) => html`<circle r=${r} fill="#fffdf8" stroke=${p.ink} stroke-width="1.4" /><circle cy="0.4" r=${inner} fill="#1c1726" /><circle cx=${inner * 0.35} cy=${-inner * 0.35} r=${inner * 0.32} fill="#fff" />`;

/** One eye, centred at the origin; side is -1 for the left one. @type {Record<string, (p: Palette, side: number) => any>} */
const EYE = {
  standard: (p) => pupil(p, 3.3, 4.3),
  round: (p) => white(p, 5.4, 3.1),
  wide: (p) => white(p, 6.8, 2.9),
  narrow: (p) => html`<ellipse rx="5" ry="2" fill=${p.ink} />`,
  soft: (p, side) => html`${pupil(p, 3.2, 3.8)}${stroke(p, `M${-5 * side} -2.6 Q${side} -7.4 ${5.6 * side} -3.4`, 1.8)}`,
  sharp: (p, side) => html`<path d=${`M${-5.5 * side} 0.6 L${5.8 * side} -3.6 Q${5 * side} 3.8 0 3.6 Q${-4 * side} 3.4 ${-5.5 * side} 0.6 Z`} fill=${p.ink} />`,
  sleepy: (p) => html`<path d="M-5 -0.6 H5 A5 4.8 0 0 1 -5 -0.6 Z" fill=${p.ink} />${stroke(p, 'M-6 -0.8 H6', 2)}`,
  calm: (p) => stroke(p, 'M-5 -0.6 Q0 4.6 5 -0.6'),
  happy: (p) => stroke(p, 'M-5 2.4 Q0 -5.4 5 2.4', 2.6),
  starry: (p) => html`<path d="M0 -6.4 Q0.9 -0.9 6.2 0 Q0.9 0.9 0 6.4 Q-0.9 0.9 -6.2 0 Q-0.9 -0.9 0 -6.4 Z" fill=${p.ink} />`,
  wink: (p, side) => (side < 0 ? pupil(p, 3.3, 4.3) : stroke(p, 'M-5 1.6 Q0 -4 5.2 1.2', 2.6)),
  curious: (p, side) => html`${side < 0 ? pupil(p, 3.1, 4) : white(p, 5.8, 3)}${stroke(p, side < 0 ? 'M-4.6 -6.6 Q0 -8.2 4.4 -6.8' : 'M-5 -9.4 Q0 -12.4 5.4 -8.8', 1.8)}`,
  spectacles: (p, side) => html`<circle r="7.6" fill="#ffffff" fill-opacity="0.28" stroke=${p.ink} stroke-width="1.7" />${pupil(p, 2.7, 3.4, 1)}${stroke(p, side < 0 ? 'M7.6 -1 Q10 -3 12.4 -1' : 'M7.6 -1.4 L12 -3', 1.7)}`,
  dots: (p) => html`<circle r="2.3" fill=${p.ink} />`,
  bright: (p) => html`${pupil(p, 4.4, 5.4, 1.7)}<circle cx="-1.4" cy="2.2" r="0.9" fill=${p.glint} />`,
};

/** Centred at the origin. @type {Record<string, (p: Palette) => any>} */
const MOUTH = {
  gentle: (p) => stroke(p, 'M-6 -0.5 Q0 4 6 -0.5'),
  smile: (p) => stroke(p, 'M-8.5 -2 Q0 8 8.5 -2'),
  grin: (p) => html`<path d="M-9 -2.4 Q0 0 9 -2.4 Q7 6.4 0 6.4 Q-7 6.4 -9 -2.4 Z" fill="#fffdf8" stroke=${p.ink} stroke-width="1.9" stroke-linejoin="round" />`,
  open: (p) => html`<ellipse cy="1" rx="5" ry="4.4" fill=${p.ink} /><ellipse cy="3.4" rx="3" ry="1.6" fill=${p.cheek} />`,
  small: (p) => stroke(p, 'M-2.8 0 Q0 1.6 2.8 0'),
  straight: (p) => stroke(p, 'M-6.5 0 H6.5'),
  tilted: (p) => stroke(p, 'M-6.5 2 Q0.5 2.8 6.5 -2.2'),
  smirk: (p) => stroke(p, 'M-6.5 1 Q2 4.4 7 -2.2 M7 -2.2 Q8.6 -2.4 9 -1'),
  serious: (p) => stroke(p, 'M-6 2 Q0 -1.6 6 2'),
  wavy: (p) => stroke(p, 'M-8 0.6 Q-5.4 -3 -2.7 0.4 T2.7 0.4 T8 0'),
  round: (p) => html`<ellipse cy="0.6" rx="2.9" ry="3.4" fill=${p.ink} />`,
  cat: (p) => stroke(p, 'M-7 -1.4 Q-3.6 4 0 -0.4 Q3.6 4 7 -1.4'),
  laugh: (p) => html`<path d="M-8.6 -2.6 H8.6 A8.6 9 0 0 1 -8.6 -2.6 Z" fill=${p.ink} stroke=${p.ink} stroke-width="1.6" stroke-linejoin="round" /><path d="M-5 3.6 Q0 0.4 5 3.6 Q2.6 6 0 6 Q-2.6 6 -5 3.6 Z" fill=${p.cheek} />`,
  tongue: (p) => html`<path d="M-0.5 1.8 H5 V4 A2.75 2.9 0 0 1 -0.5 4 Z" fill=${p.cheek} stroke=${p.ink} stroke-width="1.4" />${stroke(p, 'M-7.5 -1 Q0 4.6 7.5 -1')}`,
};

/** Parts behind the head and in front of it. @type {Record<string, {back?: (p: Palette) => any, front?: (p: Palette) => any}>} */
const HAIR = {
  sprout: { front: (p) => html`<path d="M48 23 C48 15 46 12 42 9" fill="none" stroke=${p.hair} stroke-width="2.6" stroke-linecap="round" /><path d="M46.5 14 C52 6 60 7 62 10 C58 16 51 17 46.5 14 Z" fill=${p.hair} />` },
  cap: { front: (p) => html`<path d="M22 47 C18 25 33 16 48 16 C63 16 78 25 74 47 C71 37 63 31 48 31 C33 31 25 37 22 47 Z" fill=${p.hair} />` },
  parting: { front: (p) => html`<path d="M22 48 C17 26 33 15 50 16 C67 17 79 27 74 48 C72 39 67 34 61 31 C52 39 36 40 27 36 C24 39 22.6 43 22 48 Z" fill=${p.hair} />` },
  bob: {
    back: (p) => html`<path d="M19 71 C13 32 26 14 48 14 C70 14 83 32 77 71 C71 76 62 74 59 68 H37 C34 74 25 76 19 71 Z" fill=${p.hair} />`,
    front: (p) => html`<path d="M22 46 C20 27 34 17 48 17 C62 17 76 27 74 46 C67 40 60 36 55 31 C47 37 33 38 23 45 Z" fill=${p.hair} />`,
  },
  bun: { back: (p) => html`<circle cx="48" cy="15" r="9.5" fill=${p.hair} />`, front: (p) => html`<path d="M22 46 C19 27 33 19 48 19 C63 19 77 27 74 46 C70 34 60 29 48 34 C36 29 26 34 22 46 Z" fill=${p.hair} />` },
  curls: { front: (p) => html`<g fill=${p.hair}><circle cx="24" cy="43" r="6.5" /><circle cx="27" cy="33" r="8.5" /><circle cx="36" cy="24" r="9.5" /><circle cx="48" cy="21" r="10" /><circle cx="60" cy="24" r="9.5" /><circle cx="69" cy="33" r="8.5" /><circle cx="72" cy="43" r="6.5" /></g>` },
  crest: { back: (p) => html`<path d="M34 28 C30 12 42 4 58 8 C54 11 56 13 62 15 C59 18 61 22 63 28 Z" fill=${p.hair} />`, front: (p) => html`<path d="M38 26 C38 19 42 15 49 14 C47 18 50 20 57 21 C56 24 57 26 58 28 C52 25 44 24 38 26 Z" fill=${p.hair} />` },
  hood: { back: (p) => html`<path d="M14 84 C8 40 20 10 48 10 C76 10 88 40 82 84 Z" fill=${p.hair} />`, front: (p) => html`<path d="M21 50 C19 30 33 18 48 18 C63 18 77 30 75 50 C71 36 61 30 48 30 C35 30 25 36 21 50 Z" fill=${p.hair} />` },
};

/** @param {Palette} p */
const Body = (p) => html`<path d="M8 98 C10 80 28 73 48 73 C68 73 86 80 88 98 Z" fill=${p.shade} /><path d="M40 66 H56 V75 Q48 81 40 75 Z" fill=${p.shade} />`;

/** @param {Palette} p */
const Head = (p) => html`<path d="M48 20 C64 20 74 31 74 47 C74 63 63 75 48 75 C33 75 22 63 22 47 C22 31 32 20 48 20 Z" fill=${p.skin} />
  <path d="M48 22 C36 22 27 30 25 42 C31 31 39 27 50 27 C56 27 61 29 65 32 C61 25.5 55 22 48 22 Z" fill=${p.light} opacity="0.55" />
  <ellipse cx="31.5" cy="57.5" rx="4.6" ry="3" fill=${p.cheek} opacity="0.5" /><ellipse cx="64.5" cy="57.5" rx="4.6" ry="3" fill=${p.cheek} opacity="0.5" />`;

/** @param {Palette} p @param {string} eyes @param {string} mouth */
const Looks = (p, eyes, mouth) => html`<g transform=${`translate(${LEFT} ${EYES_Y})`}>${EYE[eyes](p, -1)}</g><g transform=${`translate(${RIGHT} ${EYES_Y})`}>${EYE[eyes](p, 1)}</g>
  <g transform=${`translate(48 ${MOUTH_Y})`}>${MOUTH[mouth](p)}</g>`;

/** @param {{color: unknown, eyes: unknown, mouth: unknown, name: string}} props as the document has them */
export function Face({ color, eyes, mouth, name }) {
  return useMemo(() => {
    const p = paletteOf(colorOf(color, name)), hair = HAIR[cutOf(name)];
    return html`<svg class="face" viewBox="0 0 96 96" aria-hidden="true" focusable="false" data-eyes=${eyesOf(eyes)} data-mouth=${mouthOf(mouth)}>
      <circle cx="48" cy="48" r="48" fill=${p.halo} opacity="0.22" />${hair.back?.(p)}${Body(p)}${Head(p)}${hair.front?.(p)}${Looks(p, eyesOf(eyes), mouthOf(mouth))}</svg>`;
  }, [color, eyes, mouth, name]);
}

/** The lead's colours; no document uses them. */
const BRASS = paletteOf('#e3bd78');

/** The lead wears a cap; its eyes are closed while it sleeps. @param {{asleep: boolean}} props */
export const LeadFace = ({ asleep }) => html`<svg class="face face-lead" viewBox="0 0 96 96" aria-hidden="true" focusable="false">
  <circle cx="48" cy="48" r="48" fill="#2d5f86" opacity="0.38" /><path d="M8 98 C10 80 28 73 48 73 C68 73 86 80 88 98 Z" fill="#23405a" /><path d="M40 66 H56 V75 L48 82 L40 75 Z" fill=${BRASS.shade} /><path d="M40 75 L48 82 L56 75 L60 78 L48 92 L36 78 Z" fill="#f4f1e8" />
  ${Head(BRASS)}${Looks(BRASS, asleep ? 'calm' : 'soft', 'gentle')}
  <path d="M18 31 C15 17 33 9 48 9 C63 9 81 17 78 31 C70 27 60 25 48 25 C36 25 26 27 18 31 Z" fill="#f4f1e8" /><path d="M22 38 C22 29 33 25 48 25 C63 25 74 29 74 38 C66 34 58 32.5 48 32.5 C38 32.5 30 34 22 38 Z" fill="#23405a" />
  <path d="M20 39 C28 33.5 38 32 48 32 C58 32 68 33.5 76 39 C68 40.5 58 37.5 48 37.5 C38 37.5 28 40.5 20 39 Z" fill="#14283a" /><circle cx="48" cy="19" r="4.2" fill="none" stroke="#b98a35" stroke-width="2" /></svg>`;

/** A member that has no identity yet. @param {{seat: number}} props */
export const Egg = ({ seat }) => html`<svg class="face egg" viewBox="0 0 96 96" aria-hidden="true" focusable="false" data-turn=${(seat + Math.floor(seat / 3)) % 3}>
  <circle class="egg-ground" cx="48" cy="48" r="48" /><ellipse class="egg-shadow" cx="48" cy="82" rx="22" ry="4" />
  <g class="egg-body"><path class="egg-shell" d="M48 15 C62 15 73 38 73 55 C73 71 62 82 48 82 C34 82 23 71 23 55 C23 38 34 15 48 15 Z" />
    <path class="egg-light" d="M44 21 C36 25 29 39 29 52 C32 42 37 32 46 26 Z" />
    <g class="egg-spots"><circle cx="58" cy="36" r="3" /><circle cx="40" cy="47" r="2.2" /><circle cx="61" cy="60" r="3.6" /><circle cx="46" cy="67" r="2.6" /><circle cx="34" cy="61" r="1.8" /><circle cx="53" cy="50" r="1.6" /></g>
    <path class="egg-crack" d="M24 53 L31 57 L37 51 L44 58 L51 51 L58 58 L65 52 L72 55" /></g></svg>`;

/** An empty seat. */
export const NoFace = () => html`<svg class="face face-none" viewBox="0 0 96 96" aria-hidden="true" focusable="false"><circle cx="48" cy="48" r="46" /></svg>`;
