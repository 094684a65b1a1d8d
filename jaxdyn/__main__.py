"""``python -m jaxdyn``: the command line."""

from jaxdyn.cli.main import run

if __name__ == "__main__":
    run()
