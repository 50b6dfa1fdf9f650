"""A worker process: reads jobs from standard input, writes results to standard output, ends with its input.

It is started with `python -m`, so that a user's script needs no `if __name__ == "__main__"` guard.
"""

from __future__ import annotations

import signal
import sys

from headstart.errors import HeadstartError
from headstart.text.frames import Frame, read_frame, write_frame
from headstart.text.jobs import work_from


def serve() -> None:
    # Ctrl-C is sent to every process of the terminal, and torchrun ends a process with its children. The parent handles
    # it, and stops us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    order = read_frame(requests)
    if order is None:
        return
    try:
        work = work_from(order)
        while (request := read_frame(requests)) is not None:
            write_frame(answers, work(request.texts))
    except HeadstartError as error:
        write_frame(answers, Frame({"error": str(error)}))


if __name__ == "__main__":
    serve()
