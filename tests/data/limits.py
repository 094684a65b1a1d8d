"""A limit of time for what might never end."""

import contextlib
import signal


@contextlib.contextmanager
def within(seconds):
    """Fail what takes longer."""

    def stop(*_):
        raise TimeoutError(f"this has not ended in {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
