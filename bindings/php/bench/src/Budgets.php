<?php

declare(strict_types=1);

namespace Talea\Bench;

/** The budgets of Talea, relative to the library if it is there, else to its recorded figures. */
final class Budgets
{
    /**
     * Milliseconds of APCng with a tuned cache to collect 2,500 metrics of each type and render them,
     * on two cores of an EPYC, recorded once.
     */
    private const REFERENCE_PAGE = 489.0;

    /** @param array<string, int|string> $most the case with most metrics, without its foreign keys */
    public function __construct(
        private readonly Figures $figures,
        private readonly array $most,
        private readonly ?string $peer,
    ) {
    }

    /** @return array{budget: string, found: ?float, limit: float, met: ?bool, of: string}[] */
    public function all(): array
    {
        $case = $this->most + ['foreign' => 0];
        $own = ['metrics' => $this->most['metrics']];
        // Without the library, its time to collect is that of a page, which is more.
        $reference = $this->most['metrics'] === 2_500 ? self::REFERENCE_PAGE : null;
        $collect = $this->peer === null ? 'collect() to their page' : 'collect() to theirs';
        $budgets = [
            $this->toPeer('render() to their page', 'operations', $case, 'page', Subject::NATIVE, 1 / 50, $reference),
            $this->besideForeign(),
            $this->toPeer($collect, 'operations', $case, 'collect', Subject::ADAPTER, 1 / 5, $reference),
            $this->toPeer('updateCounter() to theirs', 'calls', ['kind' => 'counter'], 'call', Subject::ADAPTER, 0.35),
            $this->ofSpread(),
            $this->most('summary', 'grown by observations', Subject::NATIVE, 'a summary grows by its observations, kB', 0),
            $this->most('summary', 'a series', Subject::NATIVE, 'a series of a summary, kB', 16.384),
            $this->most('page', 'beyond, of PHP', Subject::NATIVE, 'memory of PHP beyond the page, MB', 1),
            $this->most('lost', 'lost', Subject::NATIVE, 'series lost', 0),
            $this->most('lost', 'lost', Subject::ADAPTER, 'series lost through the adapter', 0),
        ];
        if ($this->peer !== null) {
            // Of what is collected the library makes the text, for both.
            $page = 'page through collect() to their page';
            $budgets[] = $this->toPeer($page, 'operations', $case, 'page', Subject::ADAPTER, 1 / 5);
            foreach (['create', 'increment'] as $figure) {
                $budget = "$figure to theirs, in their benchmark";
                $budgets[] = $this->toPeer($budget, 'own', $own, $figure, Subject::ADAPTER, 0.7);
            }
        }
        return array_values(array_filter($budgets));
    }

    /** In nanoseconds, beside nothing. @return mixed[]|null */
    private function ofSpread(): ?array
    {
        $found = $this->figures->find('calls', ['kind' => 'summary, spread'], 'call', Subject::NATIVE)?->median;
        return $found === null ? null : [
            'budget' => 'an observation of a summary, spread values, ns',
            'found' => $found,
            'limit' => 300,
            'met' => $found <= 300,
            'of' => 'measured',
        ];
    }

    /** Met also where the rounds of the longest and of the quickest overlap. @return mixed[]|null */
    private function besideForeign(): ?array
    {
        $found = [];
        foreach ([0, 1_000, 10_000, 100_000, 1_000_000] as $foreign) {
            $figure = $this->figures->find('operations', $this->most + ['foreign' => $foreign], 'page', Subject::NATIVE);
            if ($figure?->median !== null) {
                $found[] = $figure;
            }
        }
        if (count($found) < 2) {
            return null;
        }
        usort($found, fn (Figure $a, Figure $b) => $a->median <=> $b->median);
        [$quickest, $longest] = [$found[0], $found[count($found) - 1]];
        $ratio = $longest->median / $quickest->median;
        $is_chance = $longest->lowest <= $quickest->highest;
        return [
            'budget' => 'render() beside any number of foreign keys, longest to quickest',
            'found' => $ratio,
            'limit' => 1.1,
            'met' => $ratio <= 1.1 || $is_chance,
            'of' => $is_chance ? 'the rounds overlap' : 'measured',
        ];
    }

    /**
     * A figure of a subject to that of the library, or to a reference where that was not measured.
     *
     * @param array<string, int|string> $case
     * @return mixed[]|null
     */
    private function toPeer(
        string $budget,
        string $experiment,
        array $case,
        string $figure,
        string $subject,
        float $limit,
        ?float $reference = null,
    ): ?array {
        $ours = $this->figures->find($experiment, $case, $figure, $subject);
        $theirs = $this->peer === null ? null : $this->figures->find($experiment, $case, $figure, $this->peer);
        if ($ours?->median === null) {
            return null;
        }
        [$base, $of] = match (true) {
            $theirs?->median !== null => [$theirs->median, "measured, $this->peer"],
            $theirs?->longer_than !== null => [$theirs->longer_than, "measured, $this->peer took longer than the limit"],
            $reference !== null => [$reference, sprintf("theirs is the reference's %s ms, not measured here", $reference)],
            default => [null, 'theirs was not measured'],
        };
        $ratio = $base === null ? null : $ours->median / $base;
        return compact('budget') + ['found' => $ratio, 'limit' => $limit, 'met' => $ratio === null ? null : $ratio <= $limit, 'of' => $of];
    }

    /** @return mixed[]|null */
    private function most(string $experiment, string $name, string $subject, string $budget, float $limit): ?array
    {
        $figure = $this->figures->find($experiment, [], $name, $subject);
        if ($figure?->highest === null) {
            return null;
        }
        // In the worst round.
        return compact('budget') + ['found' => $figure->highest, 'limit' => $limit, 'met' => $figure->highest <= $limit, 'of' => 'measured'];
    }
}
