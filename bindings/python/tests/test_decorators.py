"""Decorators on everything that an event loop awaits."""

import asyncio
import functools

import pytest

import talea_metrics


class Service:
    def __init__(self, work):
        self._work = work

    async def __call__(self):
        return await self._work()

    async def method(self):
        return await self._work()


class Threaded:
    """As asgiref's ``SyncToAsync``: its class has the ``async def``."""

    def __init__(self, work):
        functools.update_wrapper(self, work)
        self._work = work

    async def __call__(self):
        return await self._work()


KINDS = {
    "a function": lambda work: work,
    "an object": Service,
    "a method": lambda work: Service(work).method,
    "a wrapper object": Threaded,
    "partial": functools.partial,
    "partial of an object": lambda work: functools.partial(Service(work)),
    "a function that returns a coroutine": lambda work: lambda: work(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("raises", [False, True])
def test_what_is_awaited_is_measured_and_counted_until_its_end(registry, kind, raises):
    took = talea_metrics.Histogram("took_seconds", "T.", registry=registry, buckets=[1])
    busy = talea_metrics.Gauge("busy", "B.", registry=registry)
    errors = talea_metrics.Counter("errors", "E.", registry=registry)

    async def run():
        begins, ends = asyncio.Event(), asyncio.Event()

        async def work():
            begins.set()
            await ends.wait()
            if raises:
                raise ValueError
            return 7

        callable_ = errors.count_exceptions()(busy.track_inprogress()(took.time()(KINDS[kind](work))))
        task = asyncio.ensure_future(callable_())
        await asyncio.wait_for(begins.wait(), 60)
        during = [registry.get_sample_value(name) for name in ("busy", "took_seconds_count")]
        ends.set()
        try:
            return during, await task
        except ValueError:
            return during, None

    during, result = asyncio.run(run())
    assert during == [1, 0] and result == (None if raises else 7)
    after = [registry.get_sample_value(name) for name in ("busy", "took_seconds_count", "errors_total")]
    assert after == [0, 1, float(raises)]


@pytest.mark.filterwarnings("ignore:coroutine")
def test_a_coroutine_that_nothing_awaits_is_not_in_progress(registry):
    async def work():
        raise AssertionError

    busy = talea_metrics.Gauge("busy", "B.", registry=registry)
    busy.track_inprogress()(lambda: work())().close()
    assert registry.get_sample_value("busy") == 0
