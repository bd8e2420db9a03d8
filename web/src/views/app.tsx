import type { Page } from '../page.ts';
import { Endpoint } from './endpoint.tsx';
import { Endpoints } from './endpoints.tsx';
import { Explorer } from './explorer.tsx';
import { Head } from './head.tsx';
import { Help } from './help.tsx';
import { Processes } from './processes.tsx';
import { StudyView } from './study.tsx';

export function App({ page }: { page: Page }) {
  return (
    <>
      <Head page={page} />
      <main id="content">
        {page.service.trouble && (
          <p class="card words trouble" role="alert">
            {page.service.trouble}
          </p>
        )}
        <Content page={page} />
      </main>
      {page.isHelpOpen && <Help page={page} />}
    </>
  );
}

function Content({ page }: { page: Page }) {
  const { view, endpoint } = page.address;
  switch (view) {
    case 'endpoints':
      return endpoint === null ? <Endpoints page={page} /> : <Endpoint page={page} name={endpoint} key={endpoint} />;
    case 'explorer':
      return <Explorer page={page} />;
    case 'processes':
      return <Processes page={page} />;
    case 'study':
      return <StudyView page={page} />;
  }
}
