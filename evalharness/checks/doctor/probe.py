"""`python -P -m evalharness.checks.doctor.probe FAMILY DATA [SUITE...]`: play one turn of one task of each suite.

Runs in a separate process, so that a crashing library ends only this one. Prints one JSON line per suite on standard
output before the next suite is tried; the output of simulators goes to standard error.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path
from typing import Any

from evalharness.play.workers.child import die_with_parent, private_stdout


def _try_suite(family: str, suite: Any, data: Path) -> dict[str, Any]:
    from evalharness.envs import specs
    from evalharness.envs.base import MissingDataError

    spec = specs()[family]
    answer: dict[str, Any] = {"suite": suite, "tasks": 0, "expected": spec.suites.expected.get(suite, 0)}
    try:
        tasks = spec.suites.load_tasks(suite, data, 0)
        answer["tasks"] = len(tasks)
        if tasks:
            environment = spec.make(data)
            environment.reset(options={"task": tasks[0]})
            environment.step("look")
            environment.close()
            answer["plays"] = True
    except MissingDataError as error:
        answer["missing"] = str(error)
    except Exception as error:
        traceback.print_exc()
        answer["error"] = f"{type(error).__name__}: {error}"
    return answer


def main() -> None:
    die_with_parent()
    out = private_stdout()
    family, data = sys.argv[1], Path(sys.argv[2])
    suites = sys.argv[3:]
    if not suites:
        from evalharness.envs import specs

        suites = sorted(specs()[family].suites.expected)
        print(json.dumps({"suites": suites}), file=out, flush=True)
    for suite in suites:
        print(json.dumps(_try_suite(family, suite, data)), file=out, flush=True)


if __name__ == "__main__":
    main()
