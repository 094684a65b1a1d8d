"""Refusals have one wording."""

import pytest

import jaxdyn as jd


@jd.setting
class Sizes:
    """A setting with three rules."""

    classes: int = 4
    odds: jd.Swept = 0.5
    optimizer: jd.Code = jd.code("gd", "adam")

    def __post_init__(self):
        jd.require(self, self.classes >= 2, "classes is at least 2", "classes")
        jd.require(self, self.odds < self.classes, "odds is below classes", "odds", "classes")
        jd.require(self, self.optimizer == "gd" or self.classes < 9, "adam takes at most 8 classes", "optimizer", "classes")


def test_the_message_names_the_fields_and_what_is_allowed():
    Sizes()
    with pytest.raises(jd.UsageError, match=r"^classes=1 is not allowed: classes is at least 2$"):
        Sizes(classes=1)
    with pytest.raises(jd.UsageError, match=r"^odds=5.0, classes=4 are not allowed: odds is below classes$"):
        Sizes(odds=5.0)
    with pytest.raises(jd.UsageError, match=r"^optimizer=adam, classes=9 are not allowed: adam takes"):
        Sizes(optimizer="adam", classes=9)
