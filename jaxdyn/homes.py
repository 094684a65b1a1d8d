"""Where the names of ``import jaxdyn as jd`` are defined; nothing is imported here."""

__all__ = ["HOMES", "MODULES", "home_of"]

BY_MODULE = {
    "engine.verdict_map": ("Map",),
    "engine.check": ("Check", "Reading"),
    "engine.edits": ("initial", "need", "off", "rolled", "scaled", "swap"),
    "engine.claim": ("Claim", "Control"),
    "errors": ("Absent", "Inconclusive", "UsageError", "require"),
    "engine.contract": ("above", "below", "tuned"),
    "engine.judge": (
        "at_least",
        "at_most",
        "gate",
        "interval_within",
        "mean_reading",
        "mean_within",
        "relative_error",
        "rms_within",
        "share_reading",
        "share_within",
        "within",
    ),
    "engine.observables": ("Observables", "named", "observables"),
    "engine.outcome": ("Result",),
    "engine.ranges": ("field",),
    "engine.resource": ("imports", "resource"),
    "engine.fields": ("Swept",),
    "engine.grid": ("Grid", "grid"),
    "engine.setting": ("setting",),
    "engine.switch": ("Code", "code"),
    "engine.study": ("Study",),
    "engine.sweep": ("sweep",),
    "engine.theory": ("AtlasMap", "Paper", "Theory"),
    "engine.verify": ("verify", "verify_many"),
    "explorer.notebook": ("explore",),
    "report.probe": ("probe",),
}
HOMES = {name: module for module, names in BY_MODULE.items() for name in names}
MODULES = "data experiment flow linalg metrics models nn optim plotting report stats status testing text train".split()


def home_of(name: str) -> str:
    """The module that has a name of this package, such as ``jaxdyn.train``, or, for ``jd.grid``, the one that defines it."""
    return f"jaxdyn.{name}" if name in MODULES else f"jaxdyn.{HOMES[name]}" if name in HOMES else "jaxdyn"
