"""Which tests are slow, and ``--slow-share DAY``: the default tests and a seventh of the slow ones.

Seven days of checks run them all. Of a test that is marked ``thinned`` the first parameter is a default test, the others are slow.
"""

import zlib
from collections import Counter

import pytest

DAYS = 7
MANY = 50  # slow tests of a file that no fixture of the module makes expensive
DEFAULT = "not slow"  # the ``-m`` of pyproject.toml


def days(items):
    """The day of every slow test: that of its file, whose fixtures are then computed on one day; files of many tests are spread."""
    slow = {item.nodeid: item.nodeid.partition("::")[0] for item in items if item.get_closest_marker("slow")}
    count = Counter(slow.values())
    return {name: zlib.crc32((name if count[file] > MANY else file).encode()) % DAYS for name, file in slow.items()}


def pytest_addoption(parser):
    parser.addoption(
        "--slow-share", type=int, choices=range(DAYS), metavar="DAY", help="run the slow tests of this day (0 to 6) as well"
    )


def pytest_configure(config):
    """Replace the default selection; a ``-m`` from the command line still applies."""
    if config.option.slow_share is not None and config.option.markexpr == DEFAULT:
        config.option.markexpr = ""


@pytest.hookimpl(tryfirst=True)  # before the expression of -m is applied
def pytest_collection_modifyitems(config, items):
    """Mark all parameters but the first of thinned tests as slow; leave out the slow tests of other days."""
    met = set()
    for item in items:
        function = item.nodeid.partition("[")[0]
        if function in met and item.get_closest_marker("thinned"):
            item.add_marker("slow")
        met.add(function)
    day = config.option.slow_share
    if day is None:
        return
    day_of = days(items)
    config.hook.pytest_deselected(items=[item for item in items if day_of.get(item.nodeid, day) != day])
    items[:] = [item for item in items if day_of.get(item.nodeid, day) == day]
