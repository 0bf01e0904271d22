// The focus: for an element that is not drawn yet, and on the heading of what is open.

import { signal, useLayoutEffect, useRef } from './lib.js';

/** The id of the element that gets the focus once it is drawn; empty: none waits. */
const wanted = signal('');

/** Moves the focus to an element, now or as soon as it is drawn. It has its ref from useFocus. @param {string} id */
export function focusOn(id) { wanted.value = id; }

/** The ref for an element that takes the focus when focusOn names it. @param {string} id */
export function useFocus(id) {
  const ref = useRef(/** @type {any} */ (null));
  const asked = wanted.value === id;
  useLayoutEffect(() => {
    if (!asked || !ref.current) return;
    wanted.value = '';
    ref.current.focus();
  });
  return ref;
}

/** Puts the focus on the heading of what is open; in a part with a list that is the last one. */
export function focusHeading() {
  const content = document.getElementById('content');
  (/** @type {HTMLElement | undefined} */ ([...(content?.querySelectorAll('h2[id$="-title"]') ?? [])].pop()) ?? content)?.focus();
}
