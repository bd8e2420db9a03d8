import os

import pytest

import talea_metrics


@pytest.fixture
def region():
    """The path of a region's file, which does not exist yet."""
    path = f"/dev/shm/talea-test-{os.getpid()}.talea"
    yield path
    for file in [path, f"{path}.lock"]:
        if os.path.exists(file):
            os.remove(file)


@pytest.fixture
def registry():
    """A registry in memory."""
    return talea_metrics.CollectorRegistry(size=16 << 20)
