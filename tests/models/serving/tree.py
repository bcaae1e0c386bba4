"""A stand-in for a server's process tree, with the habits that make such trees survive.

    tree.py TAG MODE

A child in the same group, a grandchild that leaves group and session and ignores SIGTERM, an orphan whose
parent has ended. Every process carries TAG in its command line. The root then: `serve` waits for ever,
`exit` ends with status 3, `deaf` waits and ignores SIGTERM, `crash` kills itself with SIGSEGV, `slow` ends with
status 4 one and a half seconds after SIGTERM.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

tag, mode = sys.argv[1:3]
HERE = os.path.abspath(__file__)  # noqa: PTH100


def spawn(kind: str, **options: object) -> None:
    process = subprocess.Popen([sys.executable, "-S", HERE, tag, kind], stdout=subprocess.PIPE, **options)  # type: ignore[call-overload]
    assert process.stdout.readline() == b"up\n"


if mode == "waiter":
    print("up", flush=True)
elif mode == "escaped":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("up", flush=True)
elif mode == "orphaner":
    spawn("escaped", start_new_session=True)
    print("up", flush=True)
    sys.exit()
else:
    if mode == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if mode == "slow":
        signal.signal(signal.SIGTERM, lambda *_: (time.sleep(1.5), os._exit(4)))
    spawn("waiter")
    spawn("escaped", start_new_session=True)
    spawn("orphaner")
    print("tree is up", flush=True)
    if mode == "exit":
        sys.exit(3)
    if mode == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
while True:
    time.sleep(60)
