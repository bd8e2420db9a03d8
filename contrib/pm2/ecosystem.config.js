'use strict';

// PM2 starts processes that have no common parent of the application: a file that all know joins their metrics.

module.exports = {
  apps: [
    {
      name: 'shop',
      script: 'app.js',
      cwd: __dirname,
      exec_mode: 'cluster',
      instances: 4,
      env: {
        TALEA_REGION: process.env.SHOP_REGION ?? '/dev/shm/shop.talea',
        PORT: process.env.SHOP_PORT ?? '8080',
      },
    },
  ],
};
