// Light or dark, as the system has it or as chosen, and the colours for what is drawn on a canvas.

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'talea-theme';

export function remembered(): Theme {
  try {
    const found = localStorage.getItem(KEY);
    return THEMES.find((theme) => theme === found) ?? 'system';
  } catch {
    return 'system';
  }
}

export function choose(theme: Theme): void {
  apply(theme);
  try {
    if (theme === 'system') localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  } catch {
    // Without a store the choice holds until the page is closed.
  }
}

export function apply(theme: Theme): void {
  if (theme === 'system') delete document.documentElement.dataset['theme'];
  else document.documentElement.dataset['theme'] = theme;
  cache.clear();
}

const dark = matchMedia('(prefers-color-scheme: dark)');
const cache = new Map<string, string>();

/** Calls back when the system's theme changes. */
export function watch(changed: () => void): void {
  dark.addEventListener('change', () => {
    cache.clear();
    changed();
  });
}

/** The theme that is seen, so that a chart knows when to be drawn again. */
export const seen = (): string => document.documentElement.dataset['theme'] ?? (dark.matches ? 'dark' : 'light');

/** The colour of a variable of the style sheet, such as `--series`. */
export function colour(name: string): string {
  let found = cache.get(name);
  if (found === undefined) {
    const probe = document.createElement('span');
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    found = getComputedStyle(probe).color;
    probe.remove();
    cache.set(name, found);
  }
  return found;
}
