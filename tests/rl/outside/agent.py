"""An agent for `--agent-command` that plays Compass and can misbehave: its argument says how."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path


def post(path: str, **body: object) -> dict[str, object]:
    request = urllib.request.Request(
        os.environ["EVALHARNESS_AGENT_URL"] + path,
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {os.environ['EVALHARNESS_AGENT_TOKEN']}"},
    )
    with urllib.request.urlopen(request) as response:
        found: dict[str, object] = json.load(response)
        return found


def main(how: str, folder: Path) -> None:
    if how == "never asks":
        print("no key is set", file=sys.stderr)
        raise SystemExit(7)
    seen = post("/reset")
    if how == "leaves a process behind":
        # It changes its group and outlives its parent.
        sleeper = subprocess.Popen(["sleep", "600"], start_new_session=True)
        (folder / "left.pid").write_text(str(sleeper.pid))
    if how == "floods":
        print("first")
        for _ in range(100):
            print("\x1b[2J" + "x" * 10_000, file=sys.stderr)
        print("last")
    if how == "exits":
        os._exit(3)
    while not seen["done"]:
        seen = post("/step", action={"text": "turn right", "usage": {"cost": 0.5}})
    if how == "asks again":
        try:
            post("/reset")
        except urllib.error.HTTPError as error:
            print(json.load(error)["code"])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
