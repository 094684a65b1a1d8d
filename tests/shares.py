"""``--slow-share DAY``: the default tests and a seventh of the slow ones, so that seven days of checks run them all."""

import zlib

DAYS = 7
DEFAULT = "not slow"  # the ``-m`` of pyproject.toml


def share(nodeid):
    """The day of a test. It depends on the file alone: what a module's fixtures compute is computed on one day."""
    return zlib.crc32(nodeid.partition("::")[0].encode()) % DAYS


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
    chosen = {item: share(item.nodeid) == day or item.get_closest_marker("slow") is None for item in items}
    config.hook.pytest_deselected(items=[item for item in items if not chosen[item]])
    items[:] = [item for item in items if chosen[item]]
