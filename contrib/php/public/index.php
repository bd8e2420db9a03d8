<?php

// /srv/shop/public/index.php: a page that counts how often it is shown, and how long that takes.

declare(strict_types=1);

$began = hrtime(true);
$registry = new Talea\Registry();

// A label has few values: what clients send, such as a path, is none.
$page = ($_GET['page'] ?? '') === 'basket' ? 'basket' : 'start';
echo "<h1>The shop: $page</h1>\n";

$registry->getOrRegisterCounter('shop', 'pages', 'Pages shown.', ['page'])->inc([$page]);
$registry->getOrRegisterHistogram('shop', 'page_duration_seconds', 'Time to make a page.', ['page'])
    ->observe((hrtime(true) - $began) / 1e9, [$page]);
