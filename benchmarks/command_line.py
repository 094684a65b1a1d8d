"""How long does a user wait? ``--help``, ``list``, and ``verify`` of all claims: cold, warm, and with cached compilations only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import interleaved, publish

JAXDYN = str(Path(sys.executable).parent / "jaxdyn")


def call(*args: str, cache: str, cwd: str) -> dict | None:
    """One call as a user types it; the JSON object where it prints one."""
    env = {**os.environ, "JAXDYN_CACHE": cache}
    done = subprocess.run([JAXDYN, *args], cwd=cwd, env=env, capture_output=True, encoding="utf-8")
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout) if "--json" in args else None


def main() -> None:
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryDirectory() as cwd:
        rows = []
        for label in ("cold", "warm"):
            start = time.perf_counter()
            result = call("verify", "--json", cache=cache, cwd=cwd)
            rows.append(
                {"what": f"verify, {label}", "seconds": time.perf_counter() - start, "target": 240 if label == "cold" else 90}
            )
        claims, programs = len(result["claims"]), result["programs"]
        differ = [c["id"] for c in result["claims"] if c["verdict"] != c["expected"]]
        start = time.perf_counter()
        call("verify", "--json", "--out", "elsewhere", cache=cache, cwd=cwd)
        rows.append({"what": "verify, new folder, compilations cached", "seconds": time.perf_counter() - start, "target": ""})
        quick = {"--help": ["--help"], "list": ["list"]}
        times = interleaved({n: lambda a=a: call(*a, cache=cache, cwd=cwd) for n, a in quick.items()}, repeats=9)
        rows += [{"what": n, "seconds": times[n]["median"], "target": {"--help": 0.3, "list": 0.5}[n]} for n in quick]
    publish("command_line", f"{claims} claims, {programs} programs on this machine", rows, unexpected=differ)


if __name__ == "__main__":
    main()
