// Which elements are near the view of the open task, and work that is spread over frames.

/** Distance from the view at which rows are drawn, and at which a file is requested: before a browser lays them out. */
const NEAR = '2000px 0px';
/** Pieces of work in one frame: a block of rows takes a few milliseconds to draw. */
const FRAME_MAX = 2;
/** Pieces of work that wait: so many blocks stay drawn after they have left, because people scroll back. */
const LEFT_MAX = 16;

const narrow = matchMedia('(max-width: 820px)');

/** @type {Map<Element, (near: boolean) => void>} */
const watched = new Map();
/** @type {IntersectionObserver | null} */
let observer = null;

/** What scrolls: the changes, or on a phone the whole page. @param {Element} el */
function observe(el) {
  observer ??= new IntersectionObserver((seen) => { for (const s of seen) watched.get(s.target)?.(s.isIntersecting); },
    { root: el.closest(narrow.matches ? '.task-page' : '.task-changes'), rootMargin: NEAR });
  observer.observe(el);
}

narrow.addEventListener('change', () => {
  observer?.disconnect();
  observer = null;
  for (const el of watched.keys()) observe(el);
});

/** Tells whether an element is near the view, now and at each change, until the returned function is called. @param {Element} el @param {(near: boolean) => void} tell */
export function watchNear(el, tell) {
  watched.set(el, tell);
  observe(el);
  return () => {
    watched.delete(el);
    observer?.unobserve(el);
    if (watched.size === 0) { observer?.disconnect(); observer = null; } // the next task has another root
  };
}

/** @type {(() => boolean)[]} */
const work = [];

/** Calls a function in one of the next frames. It returns whether there was something to do. @param {() => boolean} one */
export function soon(one) {
  if (work.push(one) === 1) requestAnimationFrame(frame);
}

/** @type {Set<() => boolean>} */
const left = new Set();

/** Calls a function after LEFT_MAX others came. @param {() => boolean} one */
export function later(one) {
  left.delete(one);
  left.add(one);
  if (left.size <= LEFT_MAX) return;
  const [oldest] = left;
  left.delete(oldest);
  soon(oldest);
}

/** Takes back what later was told. @param {() => boolean} one */
export const notLater = (one) => { left.delete(one); };

function frame() {
  for (let done = 0; done < FRAME_MAX && work.length > 0;) if (/** @type {() => boolean} */ (work[0])()) { done++; work.shift(); } else work.shift();
  if (work.length > 0) requestAnimationFrame(frame);
}
