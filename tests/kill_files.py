"""Writers that are killed or meet each other, and whether the files they leave are whole.

`two_writers` lets threads or processes write the same files at once. `killed_at_every_step` kills a
writer before each thing that it does to the file system, one after the other, and
`killed_at_random` at random moments. Each returns how often it tried, and what was not whole.

    python tests/kill_files.py FOLDER 200
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rlfd_gym._file_sets import replacing_set
from rlfd_gym._files import write

NAMES = ("cost.csv", "policy.csv", "report.html")
STEPS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.link", "os.chmod", "os.listdir")
"""What Python tells audit hooks of the file system."""


@dataclass
class Counts:
    """How many times something was tried, how often the old and the new were left, and what was not whole."""

    tried: int = 0
    old: int = 0
    new: int = 0
    broken: list[str] = field(default_factory=list)


def set_of(word: str, size: int = 20_000) -> Callable[[Path], None]:
    """A function that writes three files, which all say `word`, as a set."""

    def save(folder: Path) -> None:
        with replacing_set(folder) as new:
            for name in NAMES:
                write(new / name, (word * size).encode())

    return save


def words_in(folder: Path, names: tuple[str, ...] = NAMES) -> set[str]:
    """What the files of a folder say; "nothing" if one is missing, and "half" if one is not whole."""
    found = set()
    for name in names:
        text = (folder / name).read_text() if (folder / name).exists() else ""
        found.add(text[0] if text and set(text) == {text[0]} and len(text) == 20_000 else "half" if text else "nothing")
    return found


def two_writers(folder, n_files: int = 40, kind: str = "threads") -> Counts:
    """Let four writers write the same files at the same time, each a content of its own."""
    folder, counts = Path(folder), Counts()
    for number in range(n_files):
        path = folder / f"{number}.txt"
        jobs = [lambda word=word, path=path: write(path, (word * 20_000).encode()) for word in "abcd"]
        if kind == "threads":
            workers = [threading.Thread(target=job) for job in jobs]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        else:
            for child in [forked(job) for job in jobs]:
                if os.waitpid(child, 0)[1]:
                    counts.broken.append(f"a writer of {path.name} failed")
        counts.tried += 1
        if words_in(folder, (path.name,)) - set("abcd"):
            counts.broken.append(f"{path.name}: {words_in(folder, (path.name,))}")
    counts.broken += [f"{path.name} is left" for path in folder.glob(".*")]
    return counts


def forked(job: Callable[[], None], before: Callable[[], None] = lambda: None) -> int:
    """Do something in a child process, and return its number."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        before()
        job()
        status = 0
    finally:
        os._exit(status)


def kill_before(step: int) -> None:
    """Let this process die before it does its step-th thing to the file system."""
    left = [step]

    def hook(event: str, _) -> None:
        if event in STEPS:
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1

    sys.addaudithook(hook)


def killed_at_every_step(folder, first: Callable[[Path], None] | None) -> Counts:
    """Replace an old set by a new one, killed before every step in turn; `first` writes the old one, if any."""
    counts, before = Counts(), {"nothing"} if first is None else {"o"}
    for step in range(10_000):
        place = Path(folder) / "out"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        (place / "log.csv").write_text("mine")
        if first is not None:
            first(place)
        child = forked(lambda place=place: set_of("n")(place), lambda step=step: kill_before(step))
        killed = os.waitpid(child, 0)[1] == signal.SIGKILL
        found = words_in(place)
        counts.tried += 1
        counts.old, counts.new = counts.old + (found == before), counts.new + (found == {"n"})
        if found not in (before, {"n"}) or (place / "log.csv").read_text() != "mine":
            counts.broken.append(f"step {step}: {found}")
        set_of("z")(place)
        if words_in(place) != {"z"}:
            counts.broken.append(f"step {step}: the next set is {words_in(place)}")
        if not killed:
            return counts
    raise AssertionError("the writer never came to its end")


def killed_at_random(folder, n: int, seed: int = 0, save: Callable[[Path, str], None] | None = None) -> Counts:
    """Kill a writer that replaces one set by another, over and over, at n random moments."""
    folder, counts, rng = Path(folder), Counts(), np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    saves = {word: set_of(word) for word in "on"} if save is None else {w: lambda f, w=w: save(f, w) for w in "on"}
    saves["o"](folder)  # the first time, there is much to import
    begin = time.perf_counter()
    saves["o"](folder)
    length = time.perf_counter() - begin

    def forever(words: str) -> None:
        while True:
            for word in words:
                saves[word](folder)

    for number in range(n):
        child = forked(lambda words=("on", "no")[number % 2]: forever(words))
        time.sleep(float(rng.uniform(0, 2 * length)))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = words_in(folder) if save is None else report_in(folder)
        counts.tried += 1
        counts.old, counts.new = counts.old + (found == {"o"}), counts.new + (found == {"n"})
        if found not in ({"o"}, {"n"}):
            counts.broken.append(f"kill {number}: {found}")
    return counts


def killed_reports(folder, n: int, seed: int = 0) -> Counts:
    """Kill the writer of a report on a log, as scripts/learn_from_log.py writes it, at n random moments."""
    from small_logs import TINY

    from rlfd_gym import read_log
    from rlfd_gym.report.log import learn, write_report

    costs = {(0, 0): 3.0, (0, 1): 1.0, (1, 0): 2.0, (2, 0): 5.0}
    log = read_log(TINY, discount=0.5)
    # The largest cost tells in every file to which set it belongs.
    learned = {
        word: learn(log, {pair: cost * factor for pair, cost in costs.items()}, alpha=0.5, state=word)
        for word, factor in (("o", 1.0), ("n", 1000.0))
    }
    return killed_at_random(folder, n, seed, lambda place, word: write_report(learned[word], place, title=word))


def report_in(folder: Path) -> set[str]:
    """Which of the two reports the files of a folder belong to."""
    page = (folder / "report.html").read_text()
    found = {"o" if "<h1>o</h1>" in page else "n" if "<h1>n</h1>" in page else "half"}
    found.add("n" if "5000" in (folder / "cost.csv").read_text() else "o")
    stamps = {os.path.realpath(folder / name, strict=True).rpartition("/")[0] for name in REPORT}
    return found if len(stamps) == 1 else {"files of several sets"}


REPORT = ("cost.csv", "path.csv", "path.png", "policy.csv", "report.html")


def main() -> None:
    sys.path[:0] = [str(Path(__file__).parent)]
    folder, n = Path(sys.argv[1]), int(sys.argv[2])
    for kind in ("threads", "processes"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        print("two writers,", kind, two_writers(folder / kind, n, kind))
    print("every step, nothing before", killed_at_every_step(folder / "a", None))
    print("every step, a set before", killed_at_every_step(folder / "b", set_of("o")))
    print("every step, plain files before", killed_at_every_step(folder / "c", plain_files))
    print("random", killed_at_random(folder / "d", n))
    print("reports", killed_reports(folder / "e", max(n // 10, 1)))


def plain_files(folder: Path) -> None:
    """Write three files as version 0.1 did, without links."""
    for name in NAMES:
        (folder / name).write_text("o" * 20_000)


if __name__ == "__main__":
    main()
