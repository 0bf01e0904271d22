// The vendored libraries, in one place, so that no other module knows their paths. See
// vendor/VENDORED.json.

import { h } from '../vendor/preact.mjs';
import htm from '../vendor/htm.mjs';

export { h, render, Fragment } from '../vendor/preact.mjs';
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from '../vendor/hooks.mjs';
export { batch, computed, effect, signal, untracked, useComputed, useSignal, useSignalEffect } from '../vendor/signals.mjs';

export const html = htm.bind(h);

/** @template T @typedef {import('../vendor/signals.mjs').Signal<T>} Signal */
