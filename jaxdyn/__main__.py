"""``python -m jaxdyn``: the command line."""

import sys

from jaxdyn.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
