import { useEffect, useRef } from 'preact/hooks';

import { KEYS } from '../keys.ts';
import type { Page } from '../page.ts';

export function Help({ page }: { page: Page }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current!.showModal(), []);
  return (
    <dialog class="help card" ref={dialog} aria-labelledby="help-title" onClose={() => page.showHelp(false)}>
      <h2 id="help-title">Keys</h2>
      <dl>
        {KEYS.map(([key, meaning]) => (
          <div>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <p class="note">
        Drag over a chart to zoom. Errors are responses with a status of 500 or more. A time such as {'<250 ms'} is the
        bound of its bucket, where buckets are wide. “± 0.4%” is by how much rates may be wrong, since reading the
        metrics takes some time. Hatched time was not recorded.
      </p>
      <form method="dialog">
        <button class="button">Close</button>
      </form>
    </dialog>
  );
}
