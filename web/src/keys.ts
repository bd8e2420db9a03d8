// The actions of keys on the whole page.

import { VIEWS } from './address.ts';
import type { Page } from './page.ts';

/** Each key with its meaning, for the help. */
export const KEYS = [
  ['Space', 'pause, and go on'],
  ['/', 'filter endpoints, search families'],
  ['↑ ↓', 'move through the rows of a table'],
  ['Enter', 'open the row'],
  ['Esc', 'go back: from a zoom, an endpoint, a filter'],
  ['← →', 'move the time of the charts, when it has the focus; + and − zoom'],
  ['1 2 3 4', 'show Endpoints, Explorer, Processes, Study'],
  ['?', 'show this help'],
] as const;

export function pressed(page: Page, event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (page.isHelpOpen) {
    if (event.key === 'Escape' || event.key === '?') page.showHelp(false);
    return;
  }
  const isTyping = target.matches('input:not([type=range]), textarea, select');
  if (event.key === 'Escape') return escape(page, target, isTyping);
  if (isTyping) return;
  if (event.key === ' ') {
    if (target.matches('button, summary, a')) return;
    event.preventDefault();
    page.pause();
  } else if (event.key === '/') {
    const field = document.querySelector<HTMLInputElement>('input[type=search]');
    if (!field) return;
    event.preventDefault();
    field.focus();
    field.select();
  } else if (event.key === '?') {
    page.showHelp(true);
  } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
    if (target.matches('input')) return;
    if (move(target, event.key === 'ArrowDown' ? 1 : -1)) event.preventDefault();
  } else if (/^[1-4]$/.test(event.key)) {
    const view = VIEWS[Number(event.key) - 1]!;
    if (view !== 'study' || page.service.study) page.go({ view, endpoint: null, of: null, family: null });
  }
}

/** Moves the focus to the link of the next row, if it is on that of a row or nowhere. */
function move(target: HTMLElement, by: 1 | -1): boolean {
  const links = [...document.querySelectorAll<HTMLElement>('a.row-link')];
  const at = links.indexOf(target);
  if (at < 0 && target !== document.body) return false;
  const next = links[at < 0 ? 0 : at + by];
  next?.focus();
  return next !== undefined;
}

function escape(page: Page, target: HTMLElement, isTyping: boolean): void {
  const { view, endpoint, family, filter, search, labels } = page.address;
  if (isTyping && target.matches('input[type=search]')) {
    if (view === 'explorer' && search) page.amend({ search: '' });
    else if (view === 'endpoints' && filter) page.amend({ filter: '' });
    target.blur();
  } else if (page.isPaused) page.go({ span: null });
  else if (view === 'endpoints' && endpoint) page.go({ endpoint: null, of: null });
  else if (view === 'endpoints' && filter) page.amend({ filter: '' });
  else if (view === 'explorer' && family) page.go({ family: null, labels: labels.slice(0, 0) });
}
