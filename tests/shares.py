"""``--slow-share DAY``: the default tests and a seventh of the slow ones, so that seven days of checks run them all."""

import zlib
from collections import Counter

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


def pytest_collection_modifyitems(config, items):
    """Leave out the slow tests of other days."""
    day = config.option.slow_share
    if day is None:
        return
    day_of = days(items)
    config.hook.pytest_deselected(items=[item for item in items if day_of.get(item.nodeid, day) != day])
    items[:] = [item for item in items if day_of.get(item.nodeid, day) == day]
