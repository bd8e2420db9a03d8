<?php

declare(strict_types=1);

namespace Talea\Bench;

/** How much is measured: all, or by QUICK=1 what shows in seconds that everything works. */
final class Size
{
    public readonly bool $is_quick;
    public readonly int $rounds;
    /** Seconds that one measurement may take, without what prepares it. */
    public readonly float $limit;
    /** Seconds after which no further one is begun. */
    public readonly float $time;
    public readonly ?string $only;

    public function __construct()
    {
        $this->is_quick = (bool) getenv('QUICK');
        $this->rounds = (int) (getenv('ROUNDS') ?: ($this->is_quick ? 1 : 7));
        $this->limit = (float) (getenv('LIMIT') ?: 20);
        $this->time = 60 * (float) (getenv('MINUTES') ?: 9);
        $this->only = getenv('ONLY') ?: null;
    }

    /**
     * @template T
     * @param T $all
     * @param T $quick
     * @return T
     */
    public function of(mixed $all, mixed $quick): mixed
    {
        return $this->is_quick ? $quick : $all;
    }
}
