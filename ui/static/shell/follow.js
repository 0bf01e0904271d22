// Keeps the newest line in view until the reader scrolls back; then the view stays where it is until
// the reader asks for the end.

import { count } from './format.js';
import { outcomeOf } from '../agents/words.js';
import { html, useEffect, useRef, useSignal } from './lib.js';
import { plain } from './text.js';
import { Icon } from './icons.js';
import { showSession } from './router.js';

/** Distance in pixels that counts as the end. */
const NEAR_END_PX = 24;

/**
 * @param {{current: HTMLElement | null}} box what scrolls
 * @param {(following: boolean, jumped: boolean) => void} onFollow told when the reader turns back, comes back, or jumps
 */
export function useFollow(box, onFollow) {
  const following = useSignal(true);
  const unseen = useSignal(0);
  const shape = useRef(''); // size of the box and its content at the last check
  const top = useRef(0); // where the view was at the last check
  const shapeOf = (/** @type {HTMLElement} */ el) => `${el.clientWidth} ${el.clientHeight} ${el.scrollHeight}`;
  const toEnd = () => {
    const el = box.current;
    if (!el) return;
    el.scrollTop = el.scrollHeight;
    shape.current = shapeOf(el);
    top.current = el.scrollTop;
  };
  useEffect(() => {
    const el = box.current;
    if (!el) return undefined;
    const watch = new ResizeObserver(() => { if (following.peek()) toEnd(); });
    watch.observe(el);
    return () => watch.disconnect();
  }, [box.current]);
  return {
    following,
    unseen,
    restart() { following.value = true; unseen.value = 0; },
    /** The view stays where it is: a link led to a place in it. */
    stay() { following.value = false; unseen.value = 0; },
    /** Called after drawing. @param {number} added */
    drawn(added) {
      if (following.peek()) toEnd();
      else if (added > 0) unseen.value += added;
    },
    onScroll() {
      const el = box.current;
      if (!el) return; // a late scroll event of a removed element
      const near = el.scrollHeight - el.scrollTop - el.clientHeight < NEAR_END_PX;
      const back = el.scrollTop < top.current; // only a reader scrolls back
      top.current = el.scrollTop;
      if (near) unseen.value = 0;
      if (near === following.peek()) return;
      const reshaped = shape.current !== shapeOf(el);
      shape.current = shapeOf(el);
      if (!near && (reshaped || !back)) { toEnd(); return; } // the window was resized, or the content grew
      following.value = near;
      onFollow(near, false);
    },
    jump() {
      following.value = true;
      unseen.value = 0;
      toEnd();
      onFollow(true, true);
    },
  };
}

/** @param {{follow: ReturnType<typeof useFollow>}} props */
export function Jump({ follow }) {
  if (follow.following.value) return null;
  const n = follow.unseen.value;
  return html`<button type="button" class="jump" data-jump onClick=${follow.jump}><${Icon} name="down" />
    ${n > 0 ? html`<span><span class="num">${count(n)}</span> new, jump to newest</span>` : html`<span>Jump to newest</span>`}</button>`;
}

/** How a session ended. @param {{outcome: string, why: string}} props */
export function End({ outcome, why }) {
  const end = outcomeOf(outcome || 'ok');
  return html`<p class="tape-end tape-${end.look}"><span aria-hidden="true">${end.mark}</span> Session ended: ${plain(end.label, 40)}${why ? html`<span class="tape-why">${plain(why, 300)}</span>` : ''}</p>`;
}

/** What follows a place that a link leads to. @param {{session: string}} props */
export const SpotEnd = ({ session }) => html`<p class="tape-note">A link led here. <button type="button" class="link" onClick=${() => showSession(session)}>Show the newest output of ${plain(session, 60)}</button></p>`;
