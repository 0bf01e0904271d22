// Sets the theme before the first paint. It is no module: modules run after the page is parsed, and a light page would
// flash dark. shell/prefs.js keeps the theme up to date from then on.
(() => {
  let theme = 'auto';
  try { theme = localStorage.getItem('fairlead.theme') ?? 'auto'; } catch { /* the system's theme, then */ }
  const dark = theme === 'dark' || (theme !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  document.querySelector('meta[name=theme-color]')?.setAttribute('content', dark ? '#0c141c' : '#e9e5da');
})();
