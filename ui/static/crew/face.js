// Turns an agent's document into the parts of its face. Pure.
//
// A document describes eyes and mouth in free text. Known words have a drawing; any other word
// always gets the same one of them. The text itself is never drawn.

/** @typedef {{skin: string, halo: string, light: string, shade: string, hair: string, cheek: string, ink: string, glint: string}} Palette */

export const EYES = ['standard', 'round', 'wide', 'narrow', 'soft', 'sharp', 'sleepy', 'calm', 'happy', 'starry', 'wink', 'curious', 'spectacles', 'dots', 'bright'];
export const MOUTHS = ['gentle', 'smile', 'grin', 'open', 'small', 'straight', 'tilted', 'smirk', 'serious', 'wavy', 'round', 'cat', 'laugh', 'tongue'];
export const CUTS = ['sprout', 'cap', 'parting', 'bob', 'bun', 'curls', 'crest', 'hood'];

/** Synonyms. @type {Record<string, string>} */
const EYE_WORDS = {
  default: 'standard', normal: 'standard', plain: 'standard', big: 'wide', large: 'wide', alert: 'wide', surprised: 'wide', thin: 'narrow', focused: 'narrow', squint: 'narrow', squinting: 'narrow', hooded: 'narrow',
  gentle: 'soft', kind: 'soft', warm: 'soft', almond: 'soft', fierce: 'sharp', intense: 'sharp', angry: 'sharp', keen: 'sharp', angled: 'sharp', determined: 'sharp', tired: 'sleepy', drowsy: 'sleepy', half: 'sleepy', heavy: 'sleepy',
  closed: 'calm', serene: 'calm', peaceful: 'calm', meditative: 'calm', smiling: 'happy', joyful: 'happy', cheerful: 'happy', crescent: 'happy', star: 'starry', stars: 'starry', sparkle: 'starry', sparkling: 'starry', sparkly: 'starry',
  winking: 'wink', quizzical: 'curious', questioning: 'curious', inquisitive: 'curious', uneven: 'curious', glasses: 'spectacles', goggles: 'spectacles', thoughtful: 'spectacles', dot: 'dots', tiny: 'dots', small: 'dots', beady: 'dots', shining: 'bright', shiny: 'bright', glowing: 'bright', open: 'bright',
};
/** @type {Record<string, string>} */
const MOUTH_WORDS = {
  default: 'gentle', standard: 'gentle', soft: 'gentle', kind: 'gentle', warm: 'gentle', slight: 'gentle', smiling: 'smile', happy: 'smile', wide: 'smile', broad: 'smile', grinning: 'grin', teeth: 'grin', toothy: 'grin', speaking: 'open', singing: 'open',
  tiny: 'small', little: 'small', flat: 'straight', neutral: 'straight', line: 'straight', firm: 'straight', tilt: 'tilted', crooked: 'tilted', lopsided: 'tilted', wry: 'smirk', sly: 'smirk', half: 'smirk', frown: 'serious', sad: 'serious', pensive: 'serious', stern: 'serious', thoughtful: 'serious',
  wave: 'wavy', uncertain: 'wavy', nervous: 'wavy', o: 'round', surprised: 'round', curious: 'round', whistle: 'round', kitty: 'cat', playful: 'tongue', cheeky: 'tongue', laughing: 'laugh', joyful: 'laugh', big: 'laugh',
};

/** Characters of a description that count. */
const WORD_CHARS_MAX = 200;

/** A hash of a text (FNV-1a). @param {string} text */
export function numberOf(text) {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length && i < WORD_CHARS_MAX; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return h >>> 0;
}

/** @param {unknown} word @param {string[]} known @param {Record<string, string>} others @returns {string} */
function variant(word, known, others) {
  const text = typeof word === 'string' ? word.slice(0, WORD_CHARS_MAX).toLowerCase() : '';
  const parts = text.split(/[^a-z]+/).filter(Boolean);
  for (const p of parts) {
    if (known.includes(p)) return p;
    if (Object.hasOwn(others, p)) return others[p];
  }
  return text.trim() === '' ? known[0] : known[numberOf(text) % known.length];
}

/** @param {unknown} word @returns {string} one of EYES */
export const eyesOf = (word) => variant(word, EYES, EYE_WORDS);
/** @param {unknown} word @returns {string} one of MOUTHS */
export const mouthOf = (word) => variant(word, MOUTHS, MOUTH_WORDS);
/** Hair comes from the name, so that two agents of one colour look different. @param {string} name @returns {string} one of CUTS */
export const cutOf = (name) => CUTS[numberOf(name) % CUTS.length];

/** Colours for documents without a valid one. */
const COLORS = ['#c9b1e8', '#8fc7e8', '#f2b705', '#7fd1ae', '#f2958f', '#e8c39e', '#9fb4f0', '#d7d36b', '#e59ac5', '#8ad0d0'];

/** @param {unknown} color as a document has it @param {string} name @returns {string} #rrggbb, always */
export function colorOf(color, name) {
  if (typeof color === 'string' && /^#[0-9a-f]{6}$/i.test(color)) return color.toLowerCase();
  return COLORS[numberOf(`${name}/${typeof color === 'string' ? color : ''}`) % COLORS.length];
}

/** @param {string} hex @returns {number[]} */
const parts = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/** @param {string} a @param {string} b @param {number} part of b, 0 to 1 */
export function mix(a, b, part) {
  const [x, y] = [parts(a), parts(b)];
  return '#' + x.map((v, i) => Math.round(v + (y[i] - v) * part).toString(16).padStart(2, '0')).join('');
}

/** The relative luminance of a colour, 0 to 1 (WCAG 2). @param {string} hex */
export function lightness(hex) {
  const [r, g, b] = parts(hex).map((v) => (v <= 10 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** All colours of a face from one, with enough contrast for the eyes. @param {string} hex @returns {Palette} */
export function paletteOf(hex) {
  const dark = lightness(hex) < 0.16;
  return {
    skin: hex,
    halo: dark ? mix(hex, '#ffffff', 0.55) : hex,
    light: mix(hex, '#ffffff', dark ? 0.18 : 0.4),
    shade: mix(hex, '#191428', dark ? 0.3 : 0.2),
    hair: dark ? mix(hex, '#ffffff', 0.42) : mix(hex, '#1d1730', 0.62),
    cheek: mix(hex, '#ff4f6d', 0.42),
    ink: dark ? mix(hex, '#fffdf6', 0.92) : mix(hex, '#17121f', 0.88),
    glint: dark ? mix(hex, '#000000', 0.4) : '#ffffff',
  };
}
