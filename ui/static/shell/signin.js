// Signing in. The page sends a secret as a header, and keeps it in this browser's storage for this server's address.
// It gets the secret for a code that `fairlead open` issued, from the address (#code=…) or typed by a person.
// A cookie would not do: a browser sends cookies to every port of this machine.

import { computed, html, signal, useEffect, useRef, useSignal } from './lib.js';
import { Fairlead } from './icons.js';

const KEY = 'fairlead.secret';

function stored() {
  try { return localStorage.getItem(KEY) ?? ''; } catch { return ''; }
}

const secret = signal(stored());
/** The page has a secret; whether it is valid, the next request shows. */
export const signedIn = computed(() => secret.value !== '');
let wasIn = false; // the page has shown a team: another one must not be mixed into it
/** Why the page has no valid secret; empty at first. */
const words = signal('');

/** What every request sends. */
export const proof = () => ({ Authorization: `Bearer ${secret.peek()}` });

/** @param {string} text */
function keep(text) {
  secret.value = text;
  try {
    if (text) localStorage.setItem(KEY, text);
    else localStorage.removeItem(KEY);
  } catch { /* this page is signed in until it is closed */ }
}

/** Another tab of this browser signed in or out. */
addEventListener('storage', (e) => { if (e.key === KEY || e.key === null) secret.value = stored(); });

/** The server refused a secret. A tab that still had an older one takes the newer. @param {string} [sent] the header */
export function refused(sent = proof().Authorization) {
  if (sent !== proof().Authorization) return;
  const newer = stored();
  if (newer && newer !== secret.peek()) { secret.value = newer; return; }
  if (!secret.peek()) return;
  wasIn = true;
  words.value = 'This browser is signed out: its login was revoked, or another daemon answers at this address.';
  keep('');
}

/** The browser in a few words, for the list of logins. */
function browserName() {
  const has = (/** @type {RegExp} */ re) => re.test(navigator.userAgent);
  const name = has(/Firefox\//) ? 'Firefox' : has(/Edg\//) ? 'Edge' : has(/Chrom(e|ium)\//) ? 'Chrome' : has(/Safari\//) ? 'Safari' : 'a browser';
  const on = has(/Android/) ? 'Android' : has(/iPhone|iPad/) ? 'iOS' : has(/Mac OS/) ? 'macOS' : has(/Windows/) ? 'Windows' : has(/Linux/) ? 'Linux' : '';
  return on ? `${name} on ${on}` : name;
}

/** Exchanges a code for a secret; returns why it failed, or nothing. @param {string} code */
async function redeem(code) {
  try {
    const response = await fetch('/api/v1/logins', {
      method: 'POST', cache: 'no-store', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ code, name: browserName() }),
    });
    const body = await response.json();
    if (!response.ok) return String(body.detail || `the server answered ${response.status}`);
    words.value = '';
    keep(String(body.secret));
    if (wasIn) location.reload();
    return '';
  } catch {
    return 'Fairlead did not answer. Is it running? Start it with: fairlead up';
  }
}

/** A browser that is signed in needs no code; one that is not takes it from the address. */
async function takeCode() {
  const [, code, place = ''] = /^#code=([\w-]{1,32})(?:\/([a-z]*))?$/.exec(location.hash) ?? [];
  if (!code) return;
  history.replaceState(null, '', location.pathname + '#/' + place);
  if (secret.peek()) {
    try {
      const response = await fetch('/api/v1/status', { headers: proof(), cache: 'no-store' });
      if (response.status !== 401) return;
    } catch { return; }
  }
  words.value = await redeem(code);
  if (words.value) keep('');
}

/** Takes a code from the address, now and later; the router reads the address after that. */
export async function startSignIn() {
  addEventListener('hashchange', () => void takeCode());
  await takeCode();
}

/** What the page shows instead of everything else while it has no secret. */
export function SignIn() {
  const code = useSignal('');
  const trying = useSignal(false);
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useEffect(() => { field.current?.focus(); document.title = 'Sign in \u00b7 Fairlead'; }, []);
  const send = async () => {
    if (trying.value || !code.value.trim()) { field.current?.focus(); return; }
    trying.value = true;
    words.value = await redeem(code.value.trim().slice(0, 32));
    trying.value = false;
    field.current?.select();
  };
  return html`<header class="masthead"><h1 class="brand"><${Fairlead} /><span class="brand-name">Fairlead</span><span class="brand-team">Mission Control</span></h1></header>
  <main class="sign-in">
    <h2>Sign in</h2>
    ${words.value && html`<p class="sign-in-fault" role="alert">${words.value}</p>`}
    <p>On the machine where Fairlead runs, in the repository:</p>
    <pre class="sample">fairlead open</pre>
    <p>It opens this page and signs the browser in. For another browser or a phone, <code>fairlead open --code</code> prints a code to enter here. A code is valid once and for 30 seconds.</p>
    <form class="stack" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); void send(); }}>
      <label for="login-code">Code</label>
      <div class="sign-in-row"><input id="login-code" ref=${field} type="text" value=${code.value} maxlength="32" placeholder="XXXX-XXXX" autocomplete="one-time-code" autocapitalize="characters" spellcheck=${false}
        onInput=${(/** @type {any} */ e) => { code.value = e.target.value; }} />
      <button type="submit" class="order order-primary" aria-disabled=${trying.value ? 'true' : undefined}>Sign In</button></div>
    </form>
  </main>`;
}
