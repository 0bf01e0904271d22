// Mission Control: the page. It is a client of the API like any other program.

import { AgentPane } from './agents/pane.js';
import { ChannelPane } from './channels/pane.js';
import { ChannelList } from './channels/list.js';
import { startBrowserNotices } from './inbox/browsernotices.js';
import { InboxPage } from './inbox/page.js';
import { CrewPage } from './crew/page.js';
import { Dialogs } from './shell/dialogs.js';
import { Banners, Masthead } from './shell/masthead.js';
import { Notes } from './shell/notes.js';
import { RunPane } from './runs/pane.js';
import { RunDialogs } from './runs/dialogs.js';
import { RunList } from './runs/list.js';
import { Roster } from './agents/list.js';
import { DispatchList } from './dispatch/list.js';
import { DispatchPane } from './dispatch/pane.js';
import { StartDispatchDialog } from './dispatch/startdialog.js';
import { UsagePage } from './usage/page.js';
import { Board } from './tasks/board.js';
import { NewTask } from './tasks/newtask.js';
import { DropDialog, TaskPage } from './tasks/page.js';
import { openChannel } from './channels/state.js';
import { openCrew } from './crew/state.js';
import { keepFeedOpen } from './shell/feed.js';
import { startKeys } from './shell/keys.js';
import { effect, html, render, untracked } from './shell/lib.js';
import { lookAt, waiting } from './runs/state.js';
import { connection, now } from './shell/connection.js';
import { loaded, names, team } from './agents/state.js';
import { openDispatch } from './dispatch/state.js';
import { plain } from './shell/text.js';
import { SignIn, signedIn, startSignIn } from './shell/signin.js';
import { openUsage } from './usage/state.js';
import { channelName, chosen, conversationN, counts, member, opened, place, runID, sessionName, startView } from './shell/router.js';

function Deck() {
  const cut = connection.value.phase === 'lost' ? 'deck-cut' : '';
  switch (place.value) {
    case 'tasks': return html`<main key="tasks" class="deck deck-tasks ${cut}" data-view=${runID.value ? 'task' : 'tasks'}>${runID.value ? html`<${TaskPage} />` : html`<${Board} />`}</main>`;
    case 'runs': return html`<main key="runs" class="deck deck-runs ${cut}" data-view=${runID.value ? 'run' : 'runs'}><${RunList} /><${RunPane} /></main>`;
    case 'channels': return html`<main key="channels" class="deck deck-channels ${cut}" data-view=${channelName.value ? 'channel' : 'channels'}><${ChannelList} /><${ChannelPane} /></main>`;
    case 'crew': return html`<main key="crew" class="deck deck-crew ${cut}" data-view=${member.value ? 'member' : 'crew'}><${CrewPage} /></main>`;
    case 'dispatch': return html`<main key="sessions" class="deck deck-runs deck-sessions ${cut}" data-view=${sessionName.value ? 'session' : 'sessions'}><${DispatchList} /><${DispatchPane} /></main>`;
    case 'inbox': return html`<main key="inbox" class="deck deck-inbox ${cut}"><${InboxPage} /></main>`;
    case 'usage': return html`<main key="usage" class="deck deck-usage ${cut}"><${UsagePage} /></main>`;
    default: return html`<main key="team" class="deck ${cut}" data-view=${opened.value ? 'agent' : 'team'}><${Roster} /><${AgentPane} /></main>`;
  }
}

const App = () => !signedIn.value ? html`<${SignIn} />` : html`
  <${Masthead} /><${Banners} /><${Deck} />
  <${Notes} /><${Dialogs} /><${RunDialogs} /><${NewTask} /><${DropDialog} /><${StartDispatchDialog} />`;

// A wide page always shows an agent.
effect(() => { if (loaded.value && !chosen.value && names.value.length > 0) chosen.value = names.value[0]; });

effect(() => { void runID.value; untracked(lookAt); });

effect(() => { void channelName.value; void place.value; untracked(openChannel); });

effect(() => {
  if (!signedIn.value) return;
  const n = counts.value;
  const lost = connection.value.phase === 'lost' ? 'cut off, ' : '';
  const look = n.look ? `${n.look} to look at, ` : '';
  const wait = waiting.value ? `${waiting.value} waiting for you, ` : '';
  document.title = `${lost}${wait}${look}${n.running} running \u00b7 ${plain(team.value.name, 40) || 'Fairlead'}`;
});

effect(() => { void sessionName.value; void conversationN.value; if (place.value === 'dispatch') untracked(openDispatch); });

effect(() => { if (place.value === 'crew') untracked(openCrew); });

effect(() => { void place.value; untracked(openUsage); });

// One clock for every age on the page. It stops while the page is hidden and catches up afterwards.
setInterval(() => { if (!document.hidden) now.value = Date.now(); }, 1000);
document.addEventListener('visibilitychange', () => { if (!document.hidden) now.value = Date.now(); });

await startSignIn();
startView();
startKeys();
startBrowserNotices();
render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById('app')));
void keepFeedOpen();
