<?php

declare(strict_types=1);

namespace Talea\Tests;

use Talea\Exception;
use Talea\Registry;

/**
 * Where a region cannot be, and who may read it.
 *
 * @group processes
 */
final class OpeningTest extends RegionTestCase
{
    public function testAPlaceThatCannotHoldARegionIsAnExceptionThatNamesItAndSaysWhy(): void
    {
        $wrong = [
            '/dev/shm/talea-nowhere/shop.talea' => 'No such file or directory',
            '/dev/shm' => 'a directory of user 0; expected a regular file',
            '/proc/shop.talea' => 'not on tmpfs',
        ];
        foreach ($wrong as $path => $why) {
            try {
                new Registry($path);
                self::fail("$path was opened");
            } catch (Exception $e) {
                self::assertStringContainsString($path === '/dev/shm' ? $path : dirname($path), $e->getMessage());
                self::assertStringContainsString($why, $e->getMessage());
            }
        }
    }

    public function testAFileThatIsAnothersIsLeftAloneAndASiblingIsOpened(): void
    {
        if (posix_getuid() !== 0) {
            self::markTestSkipped('only root can make a file of another user');
        }
        $path = $this->path();
        new Registry($path);
        $as = ['setpriv', '--reuid', 'nobody', '--regid', 'nogroup', '--clear-groups'];
        // The other user may not be able to read the folder that the extension is built in.
        $extension = (string) tempnam(sys_get_temp_dir(), 'talea');
        copy((string) getenv('TALEA_PHP_EXTENSION'), $extension);
        chmod($extension, 0755);
        try {
            $output = self::opened(['extension' => $extension, 'talea.region' => $path], $as);
        } finally {
            unlink($extension);
            @unlink("$path.1");
        }
        self::assertStringContainsString("talea: $path cannot be opened (Permission denied", $output);
        self::assertStringContainsString('it belongs to user 0 and has mode 0600', $output);
        self::assertStringEndsWith('opened', rtrim($output));
    }

    public function testANewRegionIsAsLongAsItIsToBe(): void
    {
        foreach (['8M' => 8 << 20, '0' => 64 << 20, '-1' => 64 << 20] as $size => $expected) {
            $path = $this->path();
            $output = self::opened(['talea.region' => $path, 'talea.size' => (string) $size]);
            self::assertSame($size === -1, str_contains($output, 'talea.size is -1; expected bytes'));
            self::assertSame($expected, filesize($path));
            unlink($path);
        }
        $tiny = ['talea.region' => $this->path(), 'talea.size' => '10'];
        $error = 'Talea\Exception: a region cannot be laid out with a length of 10 bytes';
        self::assertStringContainsString($error, self::opened($tiny));
        self::opened(['talea.size' => '8M'] + $tiny);
        self::assertSame('opened', rtrim(self::opened($tiny)), 'a region that is there has its own length');
    }

    public function testANewRegionIsReadByItsUserAlone(): void
    {
        $this->assertHasMode(0600, posix_getegid(), []);
    }

    public function testANewRegionIsReadByTheGroupOfItsProcessWhereTheModeSaysSo(): void
    {
        $this->assertHasMode(0640, posix_getegid(), ['talea.mode' => '0640']);
    }

    public function testTheGroupThatReadsIsGivenByItsNameOrItsNumber(): void
    {
        // Root can give it to any group, others to those that they are in.
        $group = posix_getuid() === 0 ? posix_getgrnam('www-data') : posix_getgrgid(posix_getegid());
        foreach ([$group['name'], (string) $group['gid']] as $named) {
            $this->assertHasMode(0640, $group['gid'], ['talea.mode' => '640', 'talea.group' => $named]);
        }
    }

    public function testAGroupThatIsNotThereIsAnExceptionAndNoFileIsMade(): void
    {
        $path = $this->path();
        $ini = ['talea.region' => $path, 'talea.mode' => '0640', 'talea.group' => 'no-such-group'];
        $output = self::opened($ini);
        self::assertStringContainsString('the group no-such-group, which cannot be found', $output);
        self::assertFileDoesNotExist($path);
    }

    public function testAModeThatIsNoneOfTheTwoIsToldAndGivesNobodyAnything(): void
    {
        foreach (['0666', '0644', '0640x', 'rw', '-1', ''] as $mode) {
            $output = $this->assertHasMode(0600, posix_getegid(), ['talea.mode' => $mode]);
            self::assertStringContainsString("talea.mode is $mode; expected 0600, or 0640", $output);
        }
    }

    /** @param array<string, string> $ini */
    private function assertHasMode(int $mode, int $group, array $ini): string
    {
        $path = $this->path();
        $output = self::opened(['talea.region' => $path, ...$ini]);
        self::assertStringContainsString('opened', $output);
        clearstatcache();
        self::assertSame(decoct($mode), decoct(fileperms($path) & 07777));
        self::assertSame($group, filegroup($path));
        return $output;
    }

    /**
     * The output of another process that opens the configured region.
     *
     * @param array<string, string> $ini
     * @param string[] $as the command that runs it
     */
    private static function opened(array $ini, array $as = []): string
    {
        $code = 'try { new Talea\Registry(); echo "opened"; }'
            . ' catch (Talea\Exception $e) { echo "Talea\Exception: ", $e->getMessage(); }';
        return self::runPhp($code, $ini + ['display_errors' => '1', 'display_startup_errors' => '1'], as: $as);
    }
}
