<?php

declare(strict_types=1);

namespace Talea\Tests;

/**
 * FPM behind nginx, with eight workers that are replaced after fifty requests each.
 *
 * @group processes
 */
final class FpmTest extends RegionTestCase
{
    private const CLIENTS = 8;

    private string $folder;
    private string $region;
    private int $port;

    /** @var resource[] */
    private array $programs = [];

    protected function setUp(): void
    {
        $this->region = $this->path();
        $this->folder = sprintf('%s/talea-fpm-%d', sys_get_temp_dir(), getmypid());
        mkdir($this->folder);
        $this->port = self::freePort();
        $this->writePages();
        $this->start($this->fpm());
        $this->start($this->nginx());
        $this->waitUntilItAnswers();
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

    public function testTheAgentShowsWhatTheWorkersShow(): void
    {
        $program = getenv('TALEA_PROGRAM') ?: '';
        if (!is_executable($program)) {
            self::markTestSkipped('the agent is not built: cargo build --release -p talea-cli');
        }
        self::inProcesses(self::CLIENTS, function (int $client): void {
            for ($i = 0; $i < 50; $i++) {
                $this->get("/count.php?id=$client-$i");
            }
        });
        $port = self::freePort();
        $owner = posix_getuid() === 0 ? ['--owner', 'www-data'] : [];
        $this->start([$program, 'serve', $this->region, '--listen', "127.0.0.1:$port", ...$owner]);
        for ($tries = 0; $tries < 100 && !($served = @file_get_contents("http://127.0.0.1:$port/metrics")); $tries++) {
            usleep(50_000);
        }
        [$page] = $this->counted();
        // Its quantiles begin when it does.
        $lines = array_filter(explode("\n", $page), fn ($line) => !str_contains($line, 'quantile='));
        self::assertGreaterThan(self::CLIENTS * 50, count($lines));
        self::assertSame([], array_diff($lines, explode("\n", (string) $served)));
    }

    private static function freePort(): int
    {
        $free = stream_socket_server('tcp://127.0.0.1:0');
        $port = (int) substr(strrchr(stream_socket_get_name($free, false), ':'), 1);
        fclose($free);
        return $port;
    }

    private function writePages(): void
    {
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

    /** @return string[] */
    private function fpm(): array
    {
        $user = posix_getuid() === 0 ? "user = www-data\nlisten.owner = www-data\n" : '';
        file_put_contents("$this->folder/fpm.conf", <<<END
            [global]
            error_log = $this->folder/fpm.log
            [pool]
            listen = $this->folder/fpm.sock
            $user
            pm = static
            pm.max_children = 8
            pm.max_requests = 50
            END);
        return [
            (glob('/usr/sbin/php-fpm*') ?: ['php-fpm'])[0], '--nodaemonize', '--allow-to-run-as-root',
            '--no-php-ini', '--fpm-config', "$this->folder/fpm.conf",
            '-d', 'zend_extension=opcache', '-d', 'extension=' . getenv('TALEA_PHP_EXTENSION'),
            '-d', "talea.region=$this->region",
        ];
    }

    /** @return string[] */
    private function nginx(): array
    {
        $user = posix_getuid() === 0 ? 'user www-data;' : '';
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
                server {
                    listen 127.0.0.1:$this->port;
                    root $this->folder;
                    location ~ \.php$ {
                        fastcgi_pass unix:$this->folder/fpm.sock;
                        fastcgi_param SCRIPT_FILENAME \$document_root\$fastcgi_script_name;
                        fastcgi_param QUERY_STRING \$query_string;
                        fastcgi_param REQUEST_METHOD \$request_method;
                    }
                }
            }
            END);
        $nginx = is_executable('/usr/sbin/nginx') ? '/usr/sbin/nginx' : 'nginx';
        return [$nginx, '-e', "$this->folder/nginx.log", '-c', "$this->folder/nginx.conf"];
    }

    /** @param string[] $command */
    private function start(array $command): void
    {
        $log = ['file', "$this->folder/output", 'a'];
        $this->programs[] = proc_open($command, [['file', '/dev/null', 'r'], $log, $log], $pipes);
    }

    private function waitUntilItAnswers(): void
    {
        for ($tries = 0; $tries < 100; $tries++) {
            if ($this->get('/metrics.php') === '') {
                return;
            }
            usleep(50_000);
        }
        $logs = array_map('file_get_contents', glob("$this->folder/{output,*.log}", GLOB_BRACE) ?: []);
        self::fail(implode("\n", $logs));
    }

    /** The body; null where there is no answer, or it is an error. */
    private function get(string $path): ?string
    {
        $context = stream_context_create(['http' => ['timeout' => 10, 'header' => 'Connection: close']]);
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
        $master = proc_get_status($this->programs[0])['pid'];
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
