"""Roles of a setting's numbers: declared, or by their names."""

import pytest

import jaxdyn as jd
from jaxdyn.engine.catalogue import registry
from jaxdyn.engine.claims import ranges
from jaxdyn.engine.claims.grid import field_table


@jd.setting
class Run:
    """Numbers of several roles, and what is no number."""

    lr: jd.Swept = jd.field(0.1, above=0)
    eta_z: jd.Swept = 1.0
    code_lr: float = 0.1
    rate: int = jd.field(2, role="none")
    rate_spread: jd.Swept = 0.0
    every: jd.Swept = 10.0
    shrink: jd.Swept = jd.field(0.5, at_least=0, role="treatment")
    width: int = 8
    order: jd.Code = jd.code("one", "other")
    noisy: bool = False
    steps_of: tuple[int, ...] = (1, 2)
    dtype: str = "float64"


@jd.setting
class Counted(Run):
    """The number of steps does not depend on the records."""

    steps: int = 100


@jd.setting
class Declared(Run):
    """A time with a name of its own."""

    settle: int = jd.field(100, role="time")


def test_names_tell_roles_unless_they_are_declared():
    assert ranges.roles_of(Run) == {
        "lr": "rate",
        "eta_z": "rate",
        "code_lr": "rate",
        "rate": "none",
        "rate_spread": "none",
        "every": "time",
        "shrink": "treatment",
        "width": "none",
    }
    assert ranges.role_of(Run, "order") is None and ranges.role_of(Run, "steps_of") is None


@pytest.mark.parametrize(("setting", "total"), [(Counted, "steps"), (Declared, "settle")])
def test_steps_between_records_are_no_time_where_the_number_of_steps_is_given(setting, total):
    found = ranges.roles_of(setting)
    assert (found["every"], found[total]) == ("none", "time")
    assert found["rate"] == "none", "a declaration is inherited"


def test_spans_do_not_count_steps():
    assert [ranges.counts_steps(name) for name in ("steps", "every", "code_steps", "horizon", "span")] == [True] * 3 + [False] * 2


def test_the_table_of_fields_shows_the_roles():
    table = {row["name"]: row["role"] for row in field_table(jd.grid(Run))}
    assert table["lr"] == "rate" and table["width"] == "none" and table["order"] is None


def test_what_is_trained_has_a_rate_or_a_time():
    """Every setting of network claims tells how long training lasts, or with what rate, but for those whose trial fixes both."""
    settings = {c.quick.setting for c in registry.all_claims().values() if c.evidence == "network"}
    silent = {s.__module__.partition("theories.")[2] for s in settings if not {"rate", "time"} & set(ranges.roles_of(s).values())}
    assert silent == {"scal.trained", "scal.whitebox"}
