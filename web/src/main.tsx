import { render } from 'preact';

import { App } from './views/app.tsx';
import { pressed } from './keys.ts';
import { Page } from './page.ts';

const place = document.getElementById('app')!;
const page = new Page(() => render(<App page={page} />, place));
addEventListener('keydown', (event) => pressed(page, event));
place.replaceChildren();
render(<App page={page} />, place);
