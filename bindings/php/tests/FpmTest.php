<?php

declare(strict_types=1);

namespace Talea\Tests;

/**
 * FPM behind nginx, as contrib/php has them, with eight workers that are replaced after fifty
 * requests each.
 *
 * @group processes
 */
final class FpmTest extends RegionTestCase
{
    private const CLIENTS = 8;
    private const EXAMPLE = __DIR__ . '/../../../contrib/php';

    private string $folder;
    private string $region;
    private int $port;
    private int $agentPort;

    /** @var array<string, resource> */
    private array $programs = [];

    protected function setUp(): void
    {
        $this->region = $this->path();
        $this->folder = sprintf('%s/talea-fpm-%d', sys_get_temp_dir(), getmypid());
        mkdir($this->folder);
        $this->port = self::freePort();
        $this->agentPort = self::freePort();
    }

    protected function tearDown(): void
    {
        foreach ($this->programs as $program) {
            proc_terminate($program);
            proc_close($program);
        }
        exec('rm -r ' . escapeshellarg($this->folder));
        parent::tearDown();
    }

    public function testEachRequestIsCountedOnceAlthoughWorkersAreReplaced(): void
    {
        $this->serve();
        self::inProcesses(self::CLIENTS, function (int $client): void {
            for ($i = 0; $i < 250; $i++) {
                self::assertSame('counted', $this->get("/count.php?id=$client-$i"));
            }
        });
        [$page, $requests, $series] = $this->counted();
        self::assertSame(self::CLIENTS * 250, $requests, $page);
        self::assertSame(self::CLIENTS * 250, $series);
        self::assertHasLine('size_count ' . self::CLIENTS * 250, $page);
    }

    public function testNoAnsweredRequestIsLostWhereWorkersAreKilled(): void
    {
        $this->serve();
        $answers = "$this->folder/answers";
        touch($answers);
        self::inProcesses(self::CLIENTS + 1, function (int $client) use ($answers): void {
            if ($client === self::CLIENTS) {
                $this->killWorkers(40);
                return;
            }
            for ($i = 0; $i < 250; $i++) {
                if ($this->get("/count.php?id=$client-$i") === 'counted') {
                    file_put_contents($answers, '.', FILE_APPEND | LOCK_EX);
                }
            }
        });
        [$page, $requests, $series] = $this->counted();
        $answered = filesize($answers);
        self::assertGreaterThan(self::CLIENTS * 100, $answered);
        self::assertGreaterThanOrEqual($answered, $requests);
        self::assertLessThanOrEqual(self::CLIENTS * 250, $requests);
        self::assertGreaterThanOrEqual($answered, $series);
    }

    public function testTwoVersionsOfAProgramInOnePoolLoseNoRequestAndNoCount(): void
    {
        $this->serve();
        file_put_contents("$this->folder/version.php", '<?php $registry = new Talea\Registry(); ' . <<<'END'
            $labels = ['page' => 'start', 'site' => 'shop', 'lang' => 'es'];
            $labels = array_slice($labels, 0, (int) $_GET['version']);
            $names = array_keys($labels);
            $registry->getOrRegisterCounter('', 'views', 'Views.', $names)->inc($labels);
            $registry->getOrRegisterHistogram('', 'view', 'Views.', $names)->observe(1, $labels);
            $registry->getOrRegisterGauge('', 'last', 'Views.', $names)->inc($labels);
            echo 'counted';
            END);
        self::inProcesses(self::CLIENTS, function (int $client): void {
            for ($i = 0; $i < 150; $i++) {
                self::assertSame('counted', $this->get('/version.php?version=' . ($client + $i) % 3 + 1));
            }
        });
        $page = (string) $this->get('/metrics.php');
        foreach (['views_total', 'view_count', 'last'] as $name) {
            foreach (['page="start"', 'page="start",site="shop"', 'page="start",site="shop",lang="es"'] as $labels) {
                self::assertHasLine("{$name}{{$labels}} " . self::CLIENTS * 50, $page);
            }
        }
        self::assertStringContainsString('talea: views is defined in two ways by this process', $this->logs());
    }

    public function testTheAgentShowsTheSamePageAsTheWorkers(): void
    {
        $this->startAgent();
        $this->serve();
        self::inProcesses(self::CLIENTS, function (int $client): void {
            for ($i = 0; $i < 50; $i++) {
                $this->get("/count.php?id=$client-$i");
            }
        });
        self::assertSame("<h1>The shop: basket</h1>\n", $this->get('/?page=basket'));
        self::assertSame("<h1>The shop: start</h1>\n", $this->get('/a/page'));
        [$page] = $this->counted();
        self::assertHasLine('shop_pages_total{page="basket"} 1', $page);
        self::assertHasLine('shop_page_duration_seconds_count{page="start"} 1', $page);
        $lines = explode("\n", $page);
        self::assertSame(1, preg_match('/^lately\{quantile="0.01"\} (\S+)$/m', $page, $found), $page);
        // Of more than 128 observations in buckets.
        self::assertEqualsWithDelta(1, (float) $found[1], 0.022);
        self::assertGreaterThan(self::CLIENTS * 50, count($lines));
        self::assertSame([], array_diff($lines, explode("\n", (string) $this->get('/metrics'))));
        self::assertStringContainsString('"127.0.0.1:9465"', self::example('prometheus.yml', []));
    }

    public function testTheAgentIsScrapedWhileNoWorkerIsLeft(): void
    {
        $this->startAgent();
        $this->serve();
        self::assertSame('counted', $this->get('/count.php?id=1'));
        proc_terminate($this->programs['fpm']);
        proc_close($this->programs['fpm']);
        unset($this->programs['fpm']);
        self::assertNull($this->get('/count.php?id=2'));
        self::assertHasLine('requests_total 1', (string) $this->get('/metrics'));
    }

    public function testWorkersWithoutARegionAreToldOfOnceInTheLogAndNotToUsers(): void
    {
        $this->serve(['php_admin_value[talea.region]' => ';']);
        self::inProcesses(self::CLIENTS, function (int $client): void {
            for ($i = 0; $i < 50; $i++) {
                self::assertSame('counted', $this->get("/count.php?id=$client-$i"));
            }
        });
        preg_match('/^requests_total (\d+)$/m', (string) $this->get('/metrics.php'), $found);
        self::assertLessThan(self::CLIENTS * 50, (int) ($found[1] ?? 0));
        self::assertSame(1, substr_count($this->logs(), 'talea: no region is configured'), $this->logs());
    }

    public function testSoAreTheWorkersOfPhpsOwnServer(): void
    {
        $this->writePages();
        file_put_contents("$this->folder/php.ini", 'extension=' . getenv('TALEA_PHP_EXTENSION'));
        $server = [PHP_BINARY, '-c', "$this->folder/php.ini", '-S', "127.0.0.1:$this->port", '-t', $this->folder];
        // It ends its workers too.
        $this->start('server', ['timeout', '300', ...$server], ['PHP_CLI_SERVER_WORKERS' => '3']);
        $this->waitUntilItAnswers("$this->port/metrics.php");
        $lines = fn (): int => substr_count($this->logs(), 'talea: no region is configured');
        // The process that forked the others answers too.
        for ($i = 0; $i < 1000 && $lines() === 0; $i++) {
            self::assertSame('counted', $this->get("/count.php?id=$i"));
        }
        self::inProcesses(self::CLIENTS, fn (int $client) => $this->get("/count.php?id=$client"));
        self::assertSame(1, $lines(), $this->logs());
    }

    public function testNothingIsToldWhereThePoolNamesTheRegion(): void
    {
        $this->serve();
        self::assertSame('counted', $this->get('/count.php?id=1'));
        $this->serve(['php_admin_value[talea.region]' => 'env[TALEA_REGION]']);
        self::assertSame('counted', $this->get('/count.php?id=2'));
        self::assertSame(2, $this->counted()[1]);
        self::assertStringNotContainsString('talea', str_replace($this->folder, '', $this->logs()));
    }

    private static function freePort(): int
    {
        $free = stream_socket_server('tcp://127.0.0.1:0');
        $port = (int) substr(strrchr(stream_socket_get_name($free, false), ':'), 1);
        fclose($free);
        return $port;
    }

    /**
     * Writes the files of the example with what differs here, and runs them.
     *
     * @param array<string, string> $changes to the pool
     */
    private function serve(array $changes = []): void
    {
        foreach ($this->programs as $name => $program) {
            if ($name !== 'agent') {
                proc_terminate($program);
                proc_close($program);
                unset($this->programs[$name]);
            }
        }
        $this->writePages();
        $this->start('fpm', $this->fpm($changes));
        $this->start('nginx', $this->nginx());
        $this->waitUntilItAnswers("$this->port/metrics.php");
    }

    /**
     * A file of the example, with replacements, each of which must occur in it.
     *
     * @param array<string, string> $changes
     */
    private static function example(string $name, array $changes): string
    {
        $text = (string) file_get_contents(self::EXAMPLE . "/$name");
        foreach ($changes as $from => $to) {
            self::assertStringContainsString($from, $text, $name);
            $text = str_replace($from, $to, $text);
        }
        return $text;
    }

    private function writePages(): void
    {
        foreach (glob(self::EXAMPLE . '/public/*.php') ?: [] as $page) {
            copy($page, "$this->folder/" . basename($page));
        }
        $open = '<?php $registry = new Talea\Registry(); ';
        file_put_contents("$this->folder/count.php", $open . <<<'END'
            $registry->getOrRegisterCounter('', 'requests', 'Requests.')->inc();
            $registry->getOrRegisterCounter('', 'ids', 'By id.', ['id'])->inc([$_GET['id']]);
            $registry->getOrRegisterHistogram('', 'size', 'Sizes.')->observe(1);
            $registry->getOrRegisterSummary('', 'lately', 'Sizes.')->observe(1);
            echo 'counted';
            END);
        file_put_contents("$this->folder/metrics.php", $open . 'echo $registry->render();');
    }

    /**
     * @param array<string, string> $changes
     * @return string[]
     */
    private function fpm(array $changes): array
    {
        $pool = self::example('pool.conf', [
            '/run/php/shop.sock' => "$this->folder/fpm.sock",
            'pm.max_requests = 500' => 'pm.max_requests = 50',
            '/dev/shm/shop.talea' => $this->region,
            ...$changes,
        ]);
        if (posix_getuid() !== 0) {
            // Only root can give its socket away.
            $pool = preg_replace('/^listen\.(owner|group) .*$/m', '', $pool);
        }
        file_put_contents("$this->folder/fpm.conf", "[global]\nerror_log = $this->folder/fpm.log\n$pool");
        file_put_contents("$this->folder/php.ini", self::example('php.ini', [
            'extension=talea' => 'extension=' . getenv('TALEA_PHP_EXTENSION'),
        ]) . "display_errors=1\nzend_extension=opcache\n");
        return [
            getenv('TALEA_PHP_FPM') ?: (glob('/usr/sbin/php-fpm*') ?: ['php-fpm'])[0],
            '--nodaemonize', '--allow-to-run-as-root',
            '--php-ini', "$this->folder/php.ini", '--fpm-config', "$this->folder/fpm.conf",
        ];
    }

    /** @return string[] */
    private function nginx(): array
    {
        $user = posix_getuid() === 0 ? 'user www-data;' : '';
        $site = self::example('nginx.conf', [
            'listen 80;' => "listen 127.0.0.1:$this->port;",
            'listen [::]:80;' => '',
            '/srv/shop/public' => $this->folder,
            '/run/php/shop.sock' => "$this->folder/fpm.sock",
            '127.0.0.1:9465' => "127.0.0.1:$this->agentPort",
        ]);
        file_put_contents("$this->folder/nginx.conf", <<<END
            $user
            daemon off;
            worker_processes 1;
            pid $this->folder/nginx.pid;
            error_log $this->folder/nginx.log;
            events {}
            http {
                access_log off;
                client_body_temp_path $this->folder/body;
                fastcgi_temp_path $this->folder/fastcgi;
                proxy_temp_path $this->folder/proxy;
                scgi_temp_path $this->folder/scgi;
                uwsgi_temp_path $this->folder/uwsgi;
                $site
            }
            END);
        $nginx = is_executable('/usr/sbin/nginx') ? '/usr/sbin/nginx' : 'nginx';
        return [$nginx, '-e', "$this->folder/nginx.log", '-c', "$this->folder/nginx.conf"];
    }

    /** As the unit starts it: before there is a region, and in the pool's group alone. */
    private function startAgent(): void
    {
        $program = getenv('TALEA_PROGRAM') ?: '';
        if (!is_executable($program)) {
            self::markTestSkipped('the agent is not built: cargo build --release -p talea-tools');
        }
        $unit = self::example('talea-agent.conf', ['/dev/shm/shop.talea' => $this->region]);
        self::assertSame(1, preg_match('~^ExecStart=/usr/local/bin/talea (.+)$~m', $unit, $command));
        self::assertSame(1, preg_match('~^SupplementaryGroups=(.+)$~m', $unit, $group));
        $arguments = explode(' ', $command[1]);
        $as = [];
        if (posix_getuid() === 0) {
            $as = ['setpriv', '--reuid', 'nobody', '--regid', 'nogroup', '--groups', $group[1]];
        } else {
            $arguments = array_diff($arguments, ['--owner', 'www-data']);
        }
        $this->start('agent', [...$as, $program, ...$arguments, '--listen', "127.0.0.1:$this->agentPort"]);
        $this->waitUntilItAnswers("$this->agentPort/healthz");
    }

    /**
     * @param string[] $command
     * @param array<string, string> $environment
     */
    private function start(string $name, array $command, array $environment = []): void
    {
        $log = ['file', "$this->folder/output", 'a'];
        // None of the settings that the system has for its own FPM.
        $environment += ['PHP_INI_SCAN_DIR' => ''] + getenv();
        $nothing = ['file', '/dev/null', 'r'];
        $this->programs[$name] = proc_open($command, [$nothing, $log, $log], $pipes, null, $environment);
    }

    private function waitUntilItAnswers(string $place): void
    {
        for ($tries = 0; $tries < 1200; $tries++) {
            if (@file_get_contents("http://127.0.0.1:$place") !== false) {
                return;
            }
            usleep(50_000);
        }
        self::fail($this->logs());
    }

    private function logs(): string
    {
        $logs = glob("$this->folder/{output,*.log}", GLOB_BRACE) ?: [];
        return implode("\n", array_map('file_get_contents', $logs));
    }

    /** The body; null where there is no answer, or it is an error. */
    private function get(string $path): ?string
    {
        $context = stream_context_create(['http' => ['timeout' => 60, 'header' => 'Connection: close']]);
        $body = @file_get_contents("http://127.0.0.1:$this->port$path", false, $context);
        return $body === false ? null : $body;
    }

    /** @return array{string, int, int} the page, and what it says of requests and of ids */
    private function counted(): array
    {
        for ($tries = 0; $tries < 10 && ($page = $this->get('/metrics.php')) === null; $tries++) {
            usleep(100_000);
        }
        self::assertSame(1, preg_match('/^requests_total (\d+)$/m', (string) $page, $found), (string) $page);
        return [$page, (int) $found[1], (int) preg_match_all('/^ids_total\{id="[0-9-]+"\} 1$/m', $page)];
    }

    private function killWorkers(int $times): void
    {
        $master = proc_get_status($this->programs['fpm'])['pid'];
        while ($times-- > 0) {
            $workers = explode(' ', trim((string) @file_get_contents("/proc/$master/task/$master/children")));
            $worker = (int) $workers[array_rand($workers)];
            if ($worker > 0) {
                posix_kill($worker, SIGKILL);
            }
            usleep(10_000);
        }
    }
}
