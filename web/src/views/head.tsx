// The top of the page: what is seen, of which service, and how current it is.

import { RANGES, VIEWS, type View } from '../address.ts';
import { duration, moment } from '../figures.ts';
import type { Page } from '../page.ts';
import { printable } from '../printable.ts';
import { THEMES } from '../theme.ts';

const TITLES: Record<View, string> = {
  endpoints: 'Endpoints',
  explorer: 'Explorer',
  processes: 'Processes',
  study: 'Study',
};

export function Head({ page }: { page: Page }) {
  const { address, service } = page;
  const title = printable(service.hello?.title || 'Talea');
  const views = VIEWS.filter((view) => view !== 'study' || service.study || address.view === 'study');
  const of = address.service === null ? title : printable(address.service);
  document.title = `${of} · ${TITLES[address.view]}`;
  return (
    <header class="top">
      <div class="bar">
        <h1>{title}</h1>
        <State page={page} />
        <ServiceChoice page={page} />
        <nav aria-label="Views">
          {views.map((view) => (
            <a
              href={page.link({ view, endpoint: null, of: null, family: null })}
              aria-current={view === address.view ? 'page' : undefined}
            >
              {TITLES[view]}
            </a>
          ))}
        </nav>
        <div class="controls">
          <Ranges page={page} />
          <button class="button" aria-pressed={page.isPaused} onClick={() => page.pause()}>
            {page.isPaused ? 'Go on' : 'Pause'}
          </button>
          <label class="select">
            <span class="hidden">Theme</span>
            <select
              value={page.theme}
              onChange={(event) => page.setTheme(THEMES[event.currentTarget.selectedIndex] ?? 'system')}
            >
              {THEMES.map((theme) => (
                <option value={theme}>{theme[0]!.toUpperCase() + theme.slice(1)}</option>
              ))}
            </select>
          </label>
          <button class="button round" aria-label="Keys and help" onClick={() => page.showHelp(true)}>
            ?
          </button>
        </div>
      </div>
    </header>
  );
}

/** The service that alone is seen. A link may name one that is gone. */
function ServiceChoice({ page }: { page: Page }) {
  const { service: chosen } = page.address;
  const all = page.service.services();
  if (chosen === null && all.length < 2) return null;
  const shown = chosen === null || all.includes(chosen) ? all : [chosen, ...all];
  return (
    <label class="select">
      <span class="hidden">Service</span>
      <select
        value={chosen === null ? 0 : shown.indexOf(chosen) + 1}
        onChange={(event) => {
          const service = shown[event.currentTarget.selectedIndex - 1] ?? null;
          page.go({ service, endpoint: null, of: null });
        }}
      >
        <option value={0}>All services</option>
        {shown.map((service, at) => (
          <option value={at + 1}>{printable(service)}</option>
        ))}
      </select>
    </label>
  );
}

function Ranges({ page }: { page: Page }) {
  return (
    <div class="ranges" role="group" aria-label="Range">
      {RANGES.map(([seconds, , name]) => (
        <button
          aria-pressed={!page.isPaused && page.address.range === seconds}
          onClick={() => page.go({ range: seconds, span: null })}
        >
          {name}
        </button>
      ))}
    </div>
  );
}

function State({ page }: { page: Page }) {
  const { address, service } = page;
  const gaps = service.missed(address);
  const missed = gaps.reduce((sum, { from, to }) => sum + (to - from) / 1000, 0);
  const silence = service.silence();
  // It is not read aloud, since it changes each second.
  const since = silence !== null && silence >= 2 && !service.isOver ? `no data for ${duration(silence)}` : '';
  const states: Record<string, [string, string]> = {
    connecting: ['wait', 'connecting'],
    live: ['good', 'live'],
    reconnecting: ['wait', 'reconnecting'],
    resting: ['wait', 'resting'],
    stopped: [
      service.isOver ? 'over' : 'bad',
      service.isOver ? `stopped: the study is ${service.study?.state}` : 'stopped',
    ],
  };
  const [kind, text] = states[service.connection]!;
  const isPausedLive = page.isPaused && service.connection === 'live';
  return (
    <div class="states" role="status">
      <p class={`state ${isPausedLive ? 'wait' : kind}`}>
        <span class="dot" aria-hidden="true" />
        {isPausedLive ? 'paused' : page.isPaused ? `paused, ${text}` : text}
        {since && <span aria-hidden="true">{since}</span>}
      </p>
      {missed >= 2 && (
        <p class="state bad" title={gaps.map((gap) => `${moment(gap.from)} to ${moment(gap.to)}`).join(', ')}>
          missed {duration(missed)}
        </p>
      )}
    </div>
  );
}
