"""Where the names of ``import jaxdyn as jd`` are defined; nothing is imported here."""

__all__ = ["HOMES", "MODULES", "home_of"]

BY_MODULE = {
    "engine.verification.verdict_map": ("Map",),
    "engine.judging.check": ("Check", "Reading"),
    "engine.claims.edits": ("initial", "need", "off", "rolled", "scaled", "swap"),
    "engine.claims.claim": ("Claim", "Control"),
    "errors": ("Absent", "Inconclusive", "UsageError", "require"),
    "engine.claims.contract": ("above", "below", "tuned"),
    "engine.judging.comparisons": (
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
    "engine.claims.observables": ("Observables", "named", "observables"),
    "engine.verification.result": ("Result",),
    "engine.claims.ranges": ("field",),
    "engine.claims.resource": ("imports", "resource"),
    "engine.claims.fields": ("Swept",),
    "engine.claims.grid": ("Grid", "Points", "grid", "points"),
    "engine.claims.setting": ("setting",),
    "engine.claims.code_field": ("Code", "code"),
    "engine.claims.study": ("Study",),
    "engine.runs.designs": ("random_grid",),
    "engine.runs.sweep": ("sweep",),
    "engine.catalogue.theory": ("AtlasMap", "Paper", "Theory"),
    "engine.verification.verify": ("verify", "verify_many"),
    "attacks.inquiry": ("referee",),
    "explorer.notebook": ("explore",),
    "report.diff": ("Diff", "diff"),
    "report.frame": ("to_frame",),
    "report.laboratory": ("lab",),
    "report.probe": ("probe",),
}
HOMES = {name: module for module, names in BY_MODULE.items() for name in names}
MODULES = "data experiment flow linalg metrics models nn optim plotting report stats status testing text train".split()


def home_of(name: str) -> str:
    """The module that has a name of this package, such as ``jaxdyn.train``, or, for ``jd.grid``, the one that defines it."""
    return f"jaxdyn.{name}" if name in MODULES else f"jaxdyn.{HOMES[name]}" if name in HOMES else "jaxdyn"
