"""Thousands of spoilt files of trainers, policies and rewards, and what loading each of them did.

`fuzz(folder, n)` spoils valid files in every way listed in `KINDS`, loads each in a process of its own
that may take little memory, and counts. A spoilt file must be refused by a `ValueError` or a
`TypeError` that names it, or give something valid: a trainer that can be saved, loaded, asked and
trained on, and whose certificate and policy are those of its solution. Anything else (a crash, a
hang, another error, an answer that contradicts itself) is a failure.

    python tests/fuzz_files.py FOLDER 4000
"""

from __future__ import annotations

import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

BATCH = 2_000  # files for one process: importing torch takes longer than loading hundreds
MEMORY = 2**30  # what a load may take on top of the libraries
SECONDS = 30  # for one file
BOMB = 9 * 2**27  # bytes of zeros, which compress to a thousandth
TRAINERS = ("smd", "exact", "rule", "simulator", "function", "untrained")
SEEDS = (*TRAINERS, "policy", "reward")


@dataclass
class Counts:
    """What came of the files, by the kind of mutation."""

    refused: Counter = field(default_factory=Counter)
    loaded: Counter = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    most_memory: int = 0

    @property
    def tried(self) -> int:
        return self.refused.total() + self.loaded.total() + len(self.failures)


def fuzz(folder, n: int, seed: int = 0) -> Counts:
    """Try n random mutations, and each of the bombs once."""
    folder, counts = Path(folder), Counts()
    call(folder, "seeds")
    begin, jobs = 0, [*range(n), *(-1 - k for k in range(len(BOMBS)))]
    while begin < len(jobs):
        batch = jobs[begin : begin + BATCH]
        result = call(folder, "batch", str(seed), *map(str, batch))
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        for line in lines:
            counts.most_memory = max(counts.most_memory, line["memory"])
            if line["outcome"] == "failed":
                counts.failures.append(f"{line['job']} {line['kind']}: {line['what']}")
            else:
                getattr(counts, line["outcome"])[line["kind"]] += 1
        begin += len(lines)
        if len(lines) < len(batch):  # the process died over the next one
            counts.failures.append(f"{jobs[begin]}: exit code {result.returncode}: {result.stderr[-2000:]}")
            begin += 1
    return counts


def call(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-X", "faulthandler", __file__, "--worker", str(folder), *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
    )


# What is spoilt.


def environments():
    import gymnasium as gym
    from trainer_data import Simulator

    import rlfd_gym  # noqa: F401

    return gym.make("rlfd_gym/WindyGridworld-v0", height=3, width=3).unwrapped, Simulator()


def mild(problem):
    """A solver of one's own, with a history and statistics."""
    from dataclasses import replace

    from rlfd_gym import History, solve_exact

    history = History(iteration=np.arange(1, 4), duality_gap=np.ones(3))
    return replace(solve_exact(problem), history=history, stats={"remark": "mine", "list": (1, 2.5)})


def trainers():
    """Trainers of every kind, small enough to be loaded thousands of times."""
    from rlfd_gym import RLfDTrainer, demonstrate
    from rlfd_gym.trainer import quiet_logger

    grid, simulator = environments()
    mdp, quiet = grid.mdp, quiet_logger()
    plan = mdp.optimal(grid.cost)
    expert, prior = plan.occupancy, 0.5 * grid.cost
    shown = demonstrate(mdp, plan.policy, 20, 15, 0)
    common = {"prior": prior, "custom_logger": quiet, "rng": 1}
    return {
        "smd": RLfDTrainer(expert, grid, solver="smd", n_runs=2, **common),
        "exact": RLfDTrainer(expert, grid, policy_kind="greedy", **common),
        "rule": RLfDTrainer(expert, grid, alpha="regret-budget:0.05", **common),
        "simulator": RLfDTrainer(shown, simulator, solver="smd", **common),
        "function": RLfDTrainer(expert, grid, solver=mild, **common),
        "untrained": RLfDTrainer(expert, grid, step_size=(1e-3, 1e-4), **common),
    }


def write_seeds(folder: Path) -> None:
    """Write the valid files."""
    for number, (name, trainer) in enumerate(trainers().items()):
        if name != "untrained":
            trainer.train(2000, log_interval=500)
        kind = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")[number % 5]
        trainer.policy.seed(np.random.Generator(getattr(np.random, kind)(number)))
        trainer.save(folder / f"{name}.npz")
    trainer.policy.save(folder / "policy.npz")
    trainer.reward_net.save(folder / "reward.npz")


# How it is spoilt: functions of (rng, content) to the new content.


def parts(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(members, method=zipfile.ZIP_DEFLATED) -> bytes:
    """Pack (name, content) pairs, torch's files without compression."""
    file = io.BytesIO()
    pairs = list(members.items() if isinstance(members, dict) else members)
    method = zipfile.ZIP_STORED if any(name.endswith(".pkl") for name, _ in pairs) else method
    with warnings.catch_warnings(), zipfile.ZipFile(file, "w", method) as archive:
        warnings.simplefilter("ignore")  # about members of one name
        for name, own in pairs:
            archive.writestr(name, own)
    return file.getvalue()


def flip(rng, content: bytes) -> bytes:
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(data)


def cut(rng, content: bytes) -> bytes:
    return content[: int(rng.integers(len(content)))]


def splice(rng, content: bytes) -> bytes:
    a, b = sorted(int(x) for x in rng.integers(len(content), size=2))
    return content[:a] + bytes(rng.integers(256, size=int(rng.integers(60)), dtype=np.uint8)) + content[b:]


def member_bytes(rng, content: bytes) -> bytes:
    """Change bytes inside a member, whose checksum is then right again."""
    members = parts(content)
    name = str(rng.choice(list(members)))
    change = (flip, cut, splice)[int(rng.integers(3))]
    members[name] = change(rng, members[name] or b"\0")
    return packed(members)


def member_start(rng, content: bytes) -> bytes:
    """Change one of the first bytes of a member: the header of an array, or a pickle."""
    members = parts(content)
    name = str(rng.choice(list(members)))
    data = bytearray(members[name] or b"\0")
    data[int(rng.integers(min(len(data), 128)))] = int(rng.integers(256))
    return packed({**members, name: bytes(data)})


def members_swapped(rng, content: bytes) -> bytes:
    members = parts(content)
    a, b = (str(name) for name in rng.choice(list(members), 2, replace=False))
    return packed({**members, a: members[b], b: members[a]})


def member_dropped(rng, content: bytes) -> bytes:
    members = parts(content)
    members.pop(str(rng.choice(list(members))))
    return packed(members)


def member_twice(rng, content: bytes) -> bytes:
    members = list(parts(content).items())
    name, own = members[int(rng.integers(len(members)))]
    return packed([*members, (name, flip(rng, own or b"\0"))])


def member_renamed(rng, content: bytes) -> bytes:
    members = parts(content)
    name = str(rng.choice(list(members)))
    other = str(
        rng.choice(["/etc/passwd", "../../outside.npy", "a\\b.npy", ".npy", "con.npy", name.upper(), "x" * 5000])
    )
    return packed({other if old == name else old: own for old, own in members.items()})


def member_as_link(rng, content: bytes) -> bytes:
    file, members = io.BytesIO(), parts(content)
    chosen = str(rng.choice(list(members)))
    with zipfile.ZipFile(file, "w") as archive:
        for name, own in members.items():
            item = zipfile.ZipInfo(name)
            if name == chosen:
                item.external_attr = 0o120777 << 16
            archive.writestr(item, b"/etc/passwd" if name == chosen else own)
    return file.getvalue()


def other_compression(rng, content: bytes) -> bytes:
    return packed(parts(content), (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)[int(rng.integers(2))])


def directory_lies(rng, content: bytes) -> bytes:
    """Change a size, an offset, a flag or the method in the directory at the end."""
    data = bytearray(content)
    starts = [k for k in range(len(data) - 4) if data[k : k + 4] == b"PK\x01\x02"]
    start = starts[int(rng.integers(len(starts)))]
    place, length = ((8, 2), (10, 2), (20, 4), (24, 4), (42, 4))[int(rng.integers(5))]
    value = int(rng.choice([0, 1, 8, 255, 2**15, 2**31 - 1, 2**32 - 1, int(rng.integers(2**32))])) % 256**length
    data[start + place : start + place + length] = value.to_bytes(length, "little")
    return bytes(data)


NASTY = (
    None, True, False, -1, 0, 1, 2, 625, 2**31, 2**63, 2**64, 2**128, 2**200, -0.5, 0.5, 1e-300, 1e308, float("nan"),
    float("inf"), -float("inf"), "", "smd", "exact", "exact: qp", "x" * 10_000, "\ud800", [], [1], [[1, [2]]], {},
    {"a": 1},
    [0] * 624, [1e308, 1e308], [0.1, 0.2, 0.3], "PCG64", "MT19937", "regret-budget:0.1", "occupancy", "l1",
)  # fmt: skip


def places(value, path=()):
    """All places in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:6]) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def with_header(content: bytes, change) -> bytes:
    members = parts(content)
    header = json.loads(str(np.load(io.BytesIO(members["header.npy"]))))
    return packed({**members, "header.npy": npy(np.array(json.dumps(change(header))))})


def npy(array, **settings) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), **settings)
    return file.getvalue()


def header_field(rng, content: bytes) -> bytes:
    """Replace, remove or double something in the header."""

    def change(header):
        path = list(places(header))[1:]
        *above, key = path[int(rng.integers(len(path)))]
        inner = header
        for step in above:
            inner = inner[step]
        act = int(rng.integers(6))
        if act == 0:
            del inner[key]
        elif act == 1 and isinstance(inner[key], (int, float)) and not isinstance(inner[key], bool):
            inner[key] = inner[key] + int(rng.integers(-2, 3))
        else:
            inner[key] = NASTY[int(rng.integers(len(NASTY)))]
        return header

    return with_header(content, change)


def array_changed(rng, content: bytes) -> bytes:
    """Change the type, the shape or the numbers of an array."""
    members = parts(content)
    name = str(rng.choice([name for name in members if name != "header.npy"]))
    array = np.load(io.BytesIO(members[name]))
    return packed({**members, name: npy(ARRAY_CHANGES[int(rng.integers(len(ARRAY_CHANGES)))](rng, array))})


def one_entry(value):
    def change(rng, array):
        if array.size == 0:
            return np.array([value])
        changed = array.astype(float) if isinstance(value, float) else array.copy()
        changed.reshape(-1)[int(rng.integers(array.size))] = value
        return changed

    return change


def nudged(rng, array):
    if array.size == 0:
        return array
    changed = array.copy()
    flat, k = changed.reshape(-1), int(rng.integers(array.size))
    flat[k] = flat[k] + int(rng.integers(-2, 3)) if array.dtype.kind == "i" else flat[k] * rng.normal() + rng.normal()
    return changed


ARRAY_CHANGES = (
    lambda rng, array: array.astype(rng.choice(["f4", "f2", "i1", "i4", "u8", "c16", "U7", "S5", ">f8", "M8[s]", "?"])),
    lambda rng, array: array[None],
    lambda rng, array: array.reshape(-1)[:-1],
    lambda rng, array: np.repeat(array, 2, axis=-1),
    lambda rng, array: array[..., ::-1].copy(),
    lambda rng, array: rng.permutation(array.reshape(-1)).reshape(array.shape),
    lambda rng, array: np.zeros_like(array),
    lambda rng, array: -array,
    lambda rng, array: array * 1e200 if array.dtype.kind == "f" else array * 2**40,
    lambda rng, array: np.asfortranarray(array),
    lambda rng, array: np.zeros(3, dtype=[("a", "f8"), ("b", "i4")]),
    lambda rng, array: np.array(3.0),
    one_entry(np.nan), one_entry(np.inf), one_entry(-1.0), one_entry(1e308), one_entry(-(2**62)),
    nudged, nudged, nudged,
)  # fmt: skip


def array_header(rng, content: bytes) -> bytes:
    """Let an array's own header promise something else than there is."""
    members = parts(content)
    name = str(rng.choice(list(members)))
    shape = ("(2305843009213693952,)", "(-1,)", "(10000000000,)", "(3, True)", "()", "(0, 99999999999)")[
        int(rng.integers(6))
    ]
    descr = ("'<f8'", "'|O'", "'<U0'", "'<U999999999'", "[('a', '<f8')]", "'|V0'")[int(rng.integers(6))]
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return packed({**members, name: b"\x93NUMPY\x01\x00\x76\x00" + text.encode() + members[name][128:]})


def objects(rng, content: bytes) -> bytes:
    """Put Python objects where numbers are; reading them would run code."""
    members = parts(content)
    name = str(rng.choice(list(members)))
    return packed({**members, name: npy(np.array([{"a": 1}], dtype=object), allow_pickle=True)})


KINDS = (flip, cut, splice, member_bytes, member_start, members_swapped, member_dropped, member_twice, member_renamed)
KINDS += (member_as_link, other_compression, directory_lies)
DEEP = (header_field, array_changed, array_header, objects)  # of files of arrays


def mutation(folder: Path, seed: int, job: int) -> tuple[str, str, bytes]:
    """Return (which file, how it is spoilt, what is left) for a number; three in four go deep."""
    rng = np.random.default_rng([seed, job])
    name = str(rng.choice(SEEDS, p=[0.3, 0.1, 0.12, 0.18, 0.1, 0.06, 0.07, 0.07]))
    kinds = KINDS if name not in TRAINERS or rng.random() < 0.35 else DEEP
    weights = np.array([12.0 if kind in (header_field, array_changed) else 1.0 for kind in kinds])
    kind = kinds[int(rng.choice(len(kinds), p=weights / weights.sum()))]
    content = (folder / f"{name}.npz").read_bytes()
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return name, kind.__name__, kind(rng, content)


BOMBS = (
    ("solution.cost", "'<f8'", f"({BOMB // 8},)", None),
    ("header", f"'<U{BOMB // 4}'", "()", None),
    ("history.iteration", "'<i8'", f"({BOMB // 8},)", None),
    ("junk", "'<f8'", f"({BOMB // 8},)", None),
    ("solution.cost", "'<f8'", "(36,)", None),
    ("solution.cost", "'<f8'", "(36,)", 128 + 36 * 8),
    ("runs.tree", "'<f8'", f"({BOMB // 8},)", 1000),
)
"""What a bomb is put in place of, what its header promises, and the size that the directory tells."""


def bomb(folder: Path, number: int) -> tuple[str, str, bytes]:
    """Return a small file with an array that would unpack to gigabytes."""
    name, descr, shape, size = BOMBS[number]
    members = parts((folder / "smd.npz").read_bytes())
    members.pop(f"{name}.npy", None)
    file = io.BytesIO(packed(members))
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
            member.write(b"\x93NUMPY\x01\x00\x76\x00" + text.encode())
            for _ in range(BOMB // 2**20):
                member.write(bytes(2**20))
        if size is not None:
            archive.getinfo(f"{name}.npy").file_size = size
    return "smd", f"bomb of {name}, {shape}, told as {size}", file.getvalue()


# What loading does.


def load(name: str, path: Path, env):
    from rlfd_gym import RLfDTrainer
    from rlfd_gym.trainer import TablePolicy, TableRewardNet, quiet_logger

    if name == "policy":
        return TablePolicy.load(path)
    if name == "reward":
        return TableRewardNet.load(path)
    return RLfDTrainer.load(path, env, solver=mild if name == "function" else None, custom_logger=quiet_logger())


def wrong(name: str, loaded, path: Path, env) -> str:
    """Return what contradicts itself in something that was loaded, or nothing."""
    from rlfd_gym.mdp.occupancy import shares

    if name == "reward":
        return "" if np.isfinite(loaded.table.detach().numpy()).all() else "a reward is not finite"
    policy = loaded if name == "policy" else loaded.policy
    table = policy.probabilities.numpy()
    if not (table >= 0).all() or not np.allclose(table.sum(axis=1), 1):
        return "the policy is none"
    drawn = policy.predict(np.arange(3000) % len(table))[0]
    if (table[np.arange(3000) % len(table), drawn] <= 0).any():
        return "an action was drawn that has no probability"
    if name == "policy":
        return ""
    again = path.with_name("again.npz")
    loaded.save(again)
    load(name, again, env)
    solution, problem = loaded._solution, loaded._problem
    if solution is not None:
        repr(solution), repr(solution.history), repr(loaded.settings)
        if loaded.solver in ("smd", "exact") and not np.allclose(
            shares(solution.occupancy, problem.state_starts), solution.policy, rtol=0, atol=1e-8
        ):
            return "the policy is not that of the occupancy"
        if not np.isnan(solution.upper):
            true = problem.bounds(solution.cost, solution.value, solution.occupancy)
            if not np.allclose(true, (solution.upper, solution.lower), rtol=1e-9, atol=1e-9):
                return f"the bounds {solution.upper, solution.lower} should be {true}"
        elif name in ("smd", "exact", "rule"):
            return "a certificate is missing"
    if problem is not None and loaded.n_runs <= 4 and not (name == "rule" and solution is None):
        if solution is not None and solution.state is not None and not solution.state.runs:
            return ""
        states = loaded.train(500) if loaded.solver == "smd" else loaded.train()
        if not np.allclose(states.sum(), 1) or not np.isfinite(loaded.solution.cost).all():
            return "training gave nonsense"
    return ""


def attempt(name: str, path: Path, env) -> tuple[str, str]:
    """Return what came of loading a file, and why."""
    try:
        loaded = load(name, path, env)
    except (ValueError, TypeError) as error:
        text = str(error)
        bad = str(path) not in text or "MemoryError" in text
        return ("failed", f"{type(error).__name__}: {text}") if bad else ("refused", text)
    except BaseException as error:
        return "failed", f"{type(error).__name__}: {error}"
    try:
        fault = wrong(name, loaded, path, env)
    except BaseException as error:
        fault = f"then {type(error).__name__}: {error}"
    return ("failed", fault) if fault else ("loaded", "")


def too_long(*_):
    raise InterruptedError("it took too long")


def work(folder: Path, seed: int, jobs: list[int]) -> None:
    """Try the mutations with these numbers, and print what came of each."""
    warnings.simplefilter("ignore")
    grid, simulator = environments()
    for name in SEEDS:  # everything is compiled and imported now
        fresh = attempt(name, folder / f"{name}.npz", simulator if name == "simulator" else grid)
        assert fresh == ("loaded", ""), (name, fresh)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    signal.signal(signal.SIGALRM, too_long)
    path = folder / f"spoilt-{os.getpid()}.npz"
    for job in jobs:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        name, kind, content = mutation(folder, seed, job) if job >= 0 else bomb(folder, -1 - job)
        path.write_bytes(content)
        del content
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
        signal.alarm(SECONDS)
        outcome, what = attempt(name, path, simulator if name == "simulator" else grid)
        signal.alarm(0)
        memory = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        line = {"job": job, "kind": kind, "outcome": outcome, "what": f"{name}: {what}", "memory": memory}
        print(json.dumps(line), flush=True)
    path.unlink(missing_ok=True)


def main() -> None:
    if sys.argv[1] == "--worker":
        sys.path[:0] = [str(Path(__file__).parent)]
        folder, act, *rest = sys.argv[2:]
        if act == "seeds":
            write_seeds(Path(folder))
        else:
            work(Path(folder), int(rest[0]), [int(job) for job in rest[1:]])
        return
    start = time.perf_counter()
    counts = fuzz(sys.argv[1], int(sys.argv[2]))
    for kind in sorted(counts.refused | counts.loaded):
        print(f"{kind:<60}{counts.refused[kind]:>6} refused{counts.loaded[kind]:>6} loaded")
    print(*counts.failures, sep="\n")
    print(f"{counts.tried} files, {len(counts.failures)} failures, {counts.most_memory / 2**20:.0f} MiB at most")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
