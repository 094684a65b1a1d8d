"""Claims and figures as the engine hands them to the report, made by hand."""

DRAWING = (
    '<svg class="figure" viewBox="0 0 4 2" role="img" aria-label="Loss against time $t$."><defs>'
    '<path id="DejaVuSans-1" d="M0 0L1 1z"/></defs><path d="M0 0L4 2"/><use href="#DejaVuSans-1"/></svg>'
)
FIGURES = {"joma.invariant": DRAWING, "joma.entropy": DRAWING}


def check(name="relative error", value=1e-12, bound=(None, 1e-8), passed=True, worst=None):
    return {"name": name, "value": value, "bound": bound and list(bound), "passed": passed, "worst": worst or {}}


def reading(name="slope", value=1.02, interval=(0.97, 1.08)):
    return {"name": name, "value": value, "interval": interval and list(interval), "worst": {}}


def claim(name, verdict="upheld", expected="upheld", **more):
    failed = check("order in $\\eta$", 1.4, [0.9, 1.1], False, {"lr": 0.1, "seed": 3})
    full = {
        "id": name,
        "title": f"The claim {name}",
        "tested": "A network of width 64, 8 seeds.",
        "theory": name.split(".")[0],
        "statement": r"Along the flow $\dot{\mathbf w} = -\nabla\mathcal L$ the invariant $\|\mathbf w\|^2 - z$ is conserved.",
        "source": "A paper, Theorem 1",
        "expected": expected,
        "verdict": verdict,
        "resolution": {"scale": {"z": 0.003, "set": None}, "mix": {"adam": 0.12}},
        "programs": 1,
        "runs": 64,
        "diverged": 0,
        "compile_seconds": 1.5,
        "run_seconds": 0.25,
        "checks": [check(), failed] if verdict == "refuted" else [check()],
        "controls": [{"name": "adam", "rejected": verdict != "toothless", "checks": [failed], "reason": None}],
        "scale": "quick",
        "seeds": 8,
        "settings": {"lr": [0.1, 0.2], "optimizer": "gd", "noise": None, "bias": False},
        "command": f"jaxdyn verify {name}",
        "message": None,
    }
    return full | more
