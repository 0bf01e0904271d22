// Runs before the first paint. It is no module: modules run after the page is parsed, and a light page would flash
// dark. It sets the theme, which shell/prefs.js keeps up to date from then on, and it tries again if a part of the
// page does not load: without one part the modules do not run at all.
(() => {
  const TRIES = 3, WAIT_MS = 2000;
  let theme = 'auto';
  try { theme = localStorage.getItem('fairlead.theme') ?? 'auto'; } catch { /* the system's theme, then */ }
  const dark = theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  const root = document.documentElement;
  root.style.colorScheme = root.dataset.theme = dark ? 'dark' : 'light'; // the canvas is painted before the style sheets are there
  document.querySelector('meta[name=theme-color]')?.setAttribute('content', dark ? '#0c141c' : '#e9e5da');

  // The number of tries stays in history.state, which a reload keeps and a new visit does not.
  addEventListener('error', (e) => {
    if (!(e.target instanceof HTMLScriptElement)) return;
    const tried = Number(history.state?.tried) || 0;
    if (tried < TRIES) {
      history.replaceState({ ...history.state, tried: tried + 1 }, '');
      setTimeout(() => location.reload(), WAIT_MS);
      return;
    }
    history.replaceState({ ...history.state, tried: 0 }, '');
    const words = document.querySelector('.loading p');
    if (!words) return;
    words.setAttribute('role', 'alert');
    words.textContent = 'A part of this page did not load. Is Fairlead running? Look with \u201cfairlead ps\u201d, then reload the page.';
  }, true);
})();
