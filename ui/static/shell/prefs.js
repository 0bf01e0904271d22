// The preferences that this browser stores: theme and shortcuts. Without storage the page works and
// forgets them.

import { effect, signal } from './lib.js';

/** A value that this browser stores. @param {string} key @param {string} fallback */
export function kept(key, fallback) {
  let first = fallback;
  try { first = localStorage.getItem(`fairlead.${key}`) ?? fallback; } catch { /* forgotten, then */ }
  const s = signal(first);
  let settled = false;
  effect(() => {
    const value = s.value;
    if (!settled) { settled = true; return; }
    try { localStorage.setItem(`fairlead.${key}`, value); } catch { /* forgotten, then */ }
  });
  return s;
}

/** auto, dark or light */
export const theme = kept('theme', 'auto');
/** on or off: the history shows the rule of each change */
export const showDetails = kept('show-details', 'off');
/** on or off: single letters act on the chosen agent */
export const letterKeys = kept('letter-keys', 'on');

const darkScheme = matchMedia('(prefers-color-scheme: dark)');
export const systemDark = signal(darkScheme.matches);
darkScheme.addEventListener('change', (e) => { systemDark.value = e.matches; });

effect(() => {
  const dark = theme.value === 'dark' || (theme.value !== 'light' && systemDark.value);
  const root = document.documentElement;
  root.style.colorScheme = root.dataset.theme = dark ? 'dark' : 'light';
  document.querySelector('meta[name=theme-color]')?.setAttribute('content', dark ? '#0c141c' : '#e9e5da'); // as --ground
});

export function nextTheme() {
  theme.value = theme.value === 'auto' ? 'dark' : theme.value === 'dark' ? 'light' : 'auto';
}
