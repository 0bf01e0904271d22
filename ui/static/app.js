// Mission Control: one page, live, a plain client of the API.

import { AgentPane } from './components/agent.js';
import { Dialogs } from './components/dialogs.js';
import { Banners, Masthead } from './components/masthead.js';
import { Notes } from './components/notes.js';
import { Roster } from './components/roster.js';
import { keepListening } from './feed.js';
import { startKeys } from './keys.js';
import { effect, html, render } from './lib.js';
import { connection, loaded, names, now, team } from './state.js';
import { plain } from './text.js';
import { chosen, counts, opened, startView } from './view.js';

const App = () => html`
  <${Masthead} /><${Banners} />
  <main class="deck ${connection.value.phase === 'lost' || connection.value.phase === 'denied' ? 'deck-cut' : ''}" data-view=${opened.value ? 'agent' : 'team'}>
    <${Roster} /><${AgentPane} />
  </main>
  <${Notes} /><${Dialogs} />`;

// On a wide page somebody is always chosen.
effect(() => { if (loaded.value && !chosen.value && names.value.length > 0) chosen.value = names.value[0]; });

effect(() => {
  const n = counts.value;
  const lost = connection.value.phase === 'lost' ? 'cut off, ' : '';
  const look = n.look ? `${n.look} to look at, ` : '';
  document.title = `${lost}${look}${n.running} running \u00b7 ${plain(team.value.name, 40) || 'Fairlead'}`;
});

// One clock for everything that ages. A hidden page does not age; it catches up when seen.
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);
document.addEventListener('visibilitychange', () => { if (!document.hidden) now.value = Date.now(); });

startView();
startKeys();
render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById('app')));
void keepListening();
