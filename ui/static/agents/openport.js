// Opens a server that an agent has started inside its wall.

import * as api from '../shell/api.js';
import { html, useSignal } from '../shell/lib.js';
import { live } from '../shell/connection.js';
import { tell } from './actions.js';

/** @param {{of: string}} props a session */
export function OpenPort({ of }) {
  const port = useSignal('');
  const opened = useSignal(/** @type {{url: string, port: string} | null} */ (null));
  const submit = async (/** @type {Event} */ e) => {
    e.preventDefault();
    const wanted = port.value;
    if (!live.peek() || !/^[0-9]{1,5}$/.test(wanted)) return;
    try {
      const { url } = await api.openPort(of, Number(wanted));
      opened.value = { url, port: wanted };
    } catch (err) {
      opened.value = null;
      tell(`open port ${wanted}`, err);
    }
  };
  return html`<form class="open-port" onSubmit=${submit}>
    <input class="num" inputmode="numeric" pattern="[0-9]{1,5}" size="6" required aria-label="Port of a server in the session" placeholder="3000" value=${port} onInput=${(/** @type {any} */ e) => { port.value = e.target.value.trim(); }} />
    <button type="submit" aria-disabled=${live.value ? undefined : 'true'}>Open</button>
    ${opened.value && html` <a class="link" href=${opened.value.url} target="_blank" rel="noreferrer" onClick=${() => { opened.value = null; }}>port ${opened.value.port} in a new tab</a>`}
  </form>`;
}
