"""The claims on teacher and student, by topic."""

from jaxdyn.theories.omnigrok.claims import delay, shell

__all__ = ["CLAIMS"]

CLAIMS = (*delay.CLAIMS, *shell.CLAIMS)
