import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

const page = fileURLToPath(new URL('../crates/talea-agent/page', import.meta.url));

/** The licences of what the script contains, at its beginning. */
function licences(): Plugin {
  const text = ['preact', 'uplot']
    .map(
      (name) => `${name}\n\n${readFileSync(new URL(`node_modules/${name}/LICENSE`, import.meta.url), 'utf8').trim()}`,
    )
    .join('\n\n');
  return {
    name: 'licences',
    enforce: 'post',
    generateBundle(_, bundle) {
      for (const part of Object.values(bundle)) {
        if (part.type === 'chunk') part.code = `/*!\n${text}\n*/\n${part.code}`;
      }
    },
    // The page asks its own server only, also with a password.
    transformIndexHtml: { order: 'post', handler: (html) => html.replaceAll(' crossorigin', '') },
  };
}

export default defineConfig({
  base: './',
  test: { include: ['src/**/*.test.ts'] },
  plugins: [licences()],
  // For work on the page: `npm run dev` serves made-up traffic, `npm run watch` the page as it is edited.
  server: { proxy: { '/live': 'http://127.0.0.1:8790' } },
  build: {
    outDir: process.env['PAGE_FOLDER'] ?? page,
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rollupOptions: {
      output: { entryFileNames: 'page.js', assetFileNames: 'page[extname]', codeSplitting: false },
    },
  },
});
