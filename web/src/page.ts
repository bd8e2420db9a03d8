// The state of the page: its address, its service, its theme; and what changes them.

import { type Address, type Span, read, write } from './address.ts';
import { type Theme, apply, choose, remembered, watch } from './theme.ts';
import { Service } from './service.ts';

export class Page {
  address: Address = read(location.hash);
  theme: Theme = remembered();
  isHelpOpen = false;
  readonly service: Service;
  private readonly narrow = matchMedia('(max-width: 640px)');
  private isDue = false;

  constructor(private readonly draw: () => void) {
    this.service = new Service(() => this.render());
    apply(this.theme);
    watch(() => this.render());
    this.narrow.addEventListener('change', () => this.render());
    addEventListener('popstate', () => this.follow());
    addEventListener('hashchange', () => this.follow());
    const see = (): void => this.service.see(!document.hidden);
    document.addEventListener('visibilitychange', see);
    this.service.renewed = () => {
      // The page of a study opens at the study.
      if (!location.hash && this.service.study) this.amend({ view: 'study' });
      this.service.show(this.address);
    };
    this.service.start(this.address);
    // A tab that was opened behind others is hidden from the start.
    see();
  }

  get isNarrow(): boolean {
    return this.narrow.matches;
  }

  get isPaused(): boolean {
    return this.address.span !== null;
  }

  /** Draws the page before the next frame. */
  render(): void {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      this.draw();
    });
  }

  /** The fragment of the address with some changes, for links. */
  link(change: Partial<Address>): string {
    return write({ ...this.address, ...change });
  }

  /** Goes on to a changed address, from which the browser goes back. */
  go(change: Partial<Address>): void {
    const fragment = this.link(change);
    if (fragment !== location.hash) history.pushState(null, '', fragment);
    this.follow();
  }

  /** Changes the address in place. */
  amend(change: Partial<Address>): void {
    history.replaceState(null, '', this.link(change));
    this.follow();
  }

  private follow(): void {
    this.address = read(location.hash);
    this.service.show(this.address);
    this.render();
  }

  pause(): void {
    if (this.isPaused) this.go({ span: null });
    else this.go({ span: this.service.freeze(this.address) });
  }

  zoom({ from, to }: Span): void {
    const now = Math.ceil(this.service.now());
    const end = Math.min(to, now);
    if (end - from >= 2000) this.go({ span: { from: Math.max(0, from), to: end } });
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    choose(theme);
    this.render();
  }

  showHelp(isOpen: boolean): void {
    this.isHelpOpen = isOpen;
    this.render();
  }
}
