<?php

declare(strict_types=1);

namespace Talea\Bench;

/** A subject of measurements: an engine, and the settings of PHP for it. */
final class Subject
{
    public const NATIVE = 'talea';
    public const ADAPTER = 'talea-adapter';
    private const TUNED = '-tuned';

    /** So that what foreign programs keep fits: the default of 32 MB would be thrown away and begun anew. */
    private const ROOM = ['apc.enable_cli=1', 'apc.shm_size=1536M'];
    private const SLOTS = ['apc.entries_hint=2000000'];

    /** @param string[] $settings of PHP */
    private function __construct(public readonly string $name, public readonly array $settings)
    {
    }

    /** @return self[] */
    public static function all(): array
    {
        // Foreign keys are put beside Talea too: with the settings that make that quick.
        $tuned = [...self::ROOM, ...self::SLOTS];
        $all = [new self(self::NATIVE, $tuned), new self(self::ADAPTER, $tuned)];
        foreach (Library::engines() as $engine) {
            if ($engine === 'InMemory') {
                $all[] = new self($engine, $tuned);
            } else {
                array_push($all, new self($engine, self::ROOM), new self($engine . self::TUNED, $tuned));
            }
        }
        return $all;
    }

    /** The engine of the library that budgets compare with. */
    public static function peer(): ?string
    {
        $engines = Library::engines();
        return $engines === [] ? null : $engines[0] . self::TUNED;
    }

    /** Whether processes share what it counts. */
    public static function isShared(string $name): bool
    {
        return $name !== 'InMemory';
    }

    public static function engine(string $name): Engine
    {
        if ($name === self::NATIVE) {
            return new NativeEngine();
        }
        if ($name === self::ADAPTER) {
            return new AdapterEngine(\Talea\PromPhp\Storage::class);
        }
        return new AdapterEngine('Prometheus\\Storage\\' . str_replace(self::TUNED, '', $name));
    }
}
