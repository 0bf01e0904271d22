// Mission Control: the page. It is a client of the API like any other program.

import { AgentPane } from './agents/pane.js';
import { ChannelPane } from './channels/pane.js';
import { ChannelList } from './channels/list.js';
import { startBrowserNotices } from './inbox/browsernotices.js';
import { InboxPage } from './inbox/page.js';
import { NowPage } from './now/page.js';
import { refreshDigest } from './now/digest.js';
import { refreshNow } from './now/state.js';
import { badge, tabTitle } from './now/words.js';
import { needs } from './inbox/state.js';
import { AgentDialog } from './configure/dialog.js';
import { CrewPage } from './crew/page.js';
import { HostDialogs, HostsPage } from './hosts/page.js';
import { Dialogs } from './shell/dialogs.js';
import { HistoryPage } from './history/page.js';
import { refreshTrail } from './history/state.js';
import { Palette } from './search/palette.js';
import { Banners, Masthead } from './shell/masthead.js';
import { Notes } from './shell/notes.js';
import { RepositoriesPage, Switcher } from './repositories/page.js';
import { startRepositories } from './repositories/state.js';
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
import { channelCell, channelNames, openChannel, unread } from './channels/state.js';
import { openCrew } from './crew/state.js';
import { MomentBar } from './moment/bar.js';
import { keepFeedOpen } from './shell/feed.js';
import { startKeys } from './shell/keys.js';
import { computed, effect, html, render, untracked } from './shell/lib.js';
import { lookAt, runs } from './runs/state.js';
import { connection, tick } from './shell/connection.js';
import { loaded, names, team } from './agents/state.js';
import { openDispatch, sessions } from './dispatch/state.js';
import { plain } from './shell/text.js';
import { SignIn, signedIn, startSignIn } from './shell/signin.js';
import { openUsage } from './usage/state.js';
import { channelName, chosen, conversationN, counts, fill, member, opened, place, runID, sessionName, shownNames, spot, startView, wide } from './shell/router.js';

function Deck() {
  const cut = connection.value.phase === 'lost' ? 'deck-cut' : '';
  switch (place.value) {
    case 'now': return html`<main id="content" tabIndex=${-1} key="now" class="deck deck-now ${cut}"><${NowPage} /></main>`;
    case 'tasks': return html`<main id="content" tabIndex=${-1} key="tasks" class="deck deck-tasks ${cut}" data-view=${runID.value ? 'task' : 'tasks'}>${runID.value ? html`<${TaskPage} />` : html`<${Board} />`}</main>`;
    case 'runs': return html`<main id="content" tabIndex=${-1} key="runs" class="deck deck-runs ${cut}" data-view=${runID.value ? 'run' : 'runs'}><${RunList} /><${RunPane} /></main>`;
    case 'channels': return html`<main id="content" tabIndex=${-1} key="channels" class="deck deck-channels ${cut}" data-view=${channelName.value ? 'channel' : 'channels'}><${ChannelList} /><${ChannelPane} /></main>`;
    case 'crew': return html`<main id="content" tabIndex=${-1} key="crew" class="deck deck-crew ${cut}" data-view=${member.value ? 'member' : 'crew'}><${CrewPage} /></main>`;
    case 'dispatch': return html`<main id="content" tabIndex=${-1} key="sessions" class="deck deck-runs deck-sessions ${cut}" data-view=${sessionName.value ? 'session' : 'sessions'}><${DispatchList} /><${DispatchPane} /></main>`;
    case 'inbox': return html`<main id="content" tabIndex=${-1} key="inbox" class="deck deck-inbox ${cut}"><${InboxPage} /></main>`;
    case 'history': return html`<main id="content" tabIndex=${-1} key="history" class="deck deck-history ${cut}"><${HistoryPage} /></main>`;
    case 'repositories': return html`<main id="content" tabIndex=${-1} key="repositories" class="deck deck-repositories ${cut}"><${RepositoriesPage} /></main>`;
    case 'hosts': return html`<main id="content" tabIndex=${-1} key="hosts" class="deck deck-hosts ${cut}"><${HostsPage} /></main>`;
    case 'usage': return html`<main id="content" tabIndex=${-1} key="usage" class="deck deck-usage ${cut}"><${UsagePage} /></main>`;
    default: return html`<main id="content" tabIndex=${-1} key="team" class="deck ${cut}" data-view=${opened.value ? 'agent' : 'team'}><${Roster} /><${AgentPane} /></main>`;
  }
}

const App = () => !signedIn.value ? html`<${SignIn} />` : html`
  <${Masthead} /><${MomentBar} /><${Banners} /><${Deck} />
  <${Notes} /><${Dialogs} /><${RunDialogs} /><${NewTask} /><${DropDialog} /><${HostDialogs} /><${StartDispatchDialog} /><${Palette} /><${Switcher} /><${AgentDialog} />`;

/** The entry of a channel that a link leads to. */
const channelSpot = computed(() => (place.value === 'channels' ? spot.value : ''));

// A wide page always shows an agent: the first in the list.
effect(() => { if (loaded.value && !chosen.value && names.value.length > 0) chosen.value = shownNames.value[0] ?? names.value[0]; });

/** Opens the first of a part on a wide page where none is open. @param {import('./shell/router.js').Place} part @param {{value: string}} open @param {() => string} first */
const openFirst = (part, open, first) => effect(() => {
  if (!wide.value || place.value !== part || open.value) return;
  const id = first();
  if (id) untracked(() => fill(() => { open.value = id; }));
});
openFirst('runs', runID, () => (runs.value.find((r) => r.status === 'waiting') ?? runs.value[0])?.run_id ?? '');
openFirst('channels', channelName, () => channelNames.value.find((n) => { const c = channelCell(n)?.value; return c && (c.open?.length || unread(c) > 0); }) ?? channelNames.value[0] ?? '');
openFirst('dispatch', sessionName, () => (sessions.value.find((s) => s.waiting > 0) ?? sessions.value[0])?.name ?? '');

effect(() => { void runID.value; untracked(lookAt); });

effect(() => { void channelName.value; void place.value; void channelSpot.value; untracked(openChannel); });

effect(() => {
  if (!signedIn.value) return;
  const n = counts.value;
  document.title = tabTitle({ needs: needs.value.length, running: n.running, look: n.look, lost: connection.value.phase === 'lost', team: plain(team.value.name, 40) || 'Fairlead' });
});

effect(() => { void sessionName.value; void conversationN.value; if (place.value === 'dispatch') untracked(openDispatch); });

effect(() => { if (place.value === 'crew') untracked(openCrew); });

effect(() => {
  const icon = document.querySelector('link[rel="icon"]');
  if (icon instanceof HTMLLinkElement) icon.href = badge(signedIn.value ? needs.value.length : 0) || '/favicon.svg';
});

effect(() => { void place.value; untracked(() => { refreshNow(true); refreshDigest(); refreshTrail(); }); });

effect(() => { void place.value; untracked(openUsage); });

// One clock for every age on the page. It stops while the page is hidden and catches up afterwards.
setInterval(() => { if (!document.hidden) tick(); }, 1000);
document.addEventListener('visibilitychange', () => { if (!document.hidden) tick(); });

await startSignIn();
startView();
startKeys();
startBrowserNotices();
startRepositories();
render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById('app')));
void keepFeedOpen();
